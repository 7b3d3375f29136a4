#include <algorithm>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/text_codec.h"
#include "text/tokenizer.h"

namespace bodega::engine {
namespace {

class StreamDetokenizer : public Detokenizer {
 public:
  StreamDetokenizer(std::shared_ptr<const text::Tokenizer> tokenizer,
                    std::span<const core::TokenId> context, std::span<const core::TokenId> shown)
      : tokenizer_(tokenizer),
        shown_(shown.begin(), shown.end()),
        decoder_(std::move(tokenizer), /*skip_special=*/shown.empty()) {
    decoder_.prime(context);
  }
  std::string push(core::TokenId id) override {
    const bool skipped = !shown_.empty() && tokenizer_->is_special(id) &&
                         std::find(shown_.begin(), shown_.end(), id) == shown_.end();
    return skipped ? std::string() : decoder_.push(id);
  }
  std::string flush() override { return decoder_.flush(); }

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::vector<core::TokenId> shown_;
  text::StreamDecoder decoder_;
};

class TokenizerCodec : public TextCodec {
 public:
  explicit TokenizerCodec(std::shared_ptr<const text::Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}
  std::unique_ptr<Detokenizer> detokenizer(std::span<const core::TokenId> context,
                                           std::span<const core::TokenId> shown) const override {
    return std::make_unique<StreamDetokenizer>(tokenizer_, context, shown);
  }
  std::string token_text(core::TokenId id) const override { return tokenizer_->id_to_token(id); }

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
};

}  // namespace

Engine::Engine(EngineConfig config, std::shared_ptr<const text::Tokenizer> tokenizer,
               std::function<std::unique_ptr<Runner>()> make_runner)
    : Engine(std::move(config), std::make_shared<const TokenizerCodec>(std::move(tokenizer)),
             std::move(make_runner)) {}

}  // namespace bodega::engine
