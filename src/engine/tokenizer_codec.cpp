#include <utility>

#include "engine/engine.h"
#include "engine/text_codec.h"
#include "text/tokenizer.h"

namespace bodega::engine {
namespace {

class StreamDetokenizer : public Detokenizer {
 public:
  StreamDetokenizer(std::shared_ptr<const text::Tokenizer> tokenizer,
                    std::span<const core::TokenId> context)
      : decoder_(std::move(tokenizer), /*skip_special=*/true) {
    decoder_.prime(context);
  }
  std::string push(core::TokenId id) override { return decoder_.push(id); }
  std::string flush() override { return decoder_.flush(); }

 private:
  text::StreamDecoder decoder_;
};

class TokenizerCodec : public TextCodec {
 public:
  explicit TokenizerCodec(std::shared_ptr<const text::Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)) {}
  std::unique_ptr<Detokenizer> detokenizer(std::span<const core::TokenId> context) const override {
    return std::make_unique<StreamDetokenizer>(tokenizer_, context);
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
