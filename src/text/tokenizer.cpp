#include "text/tokenizer.h"

#include <utility>

#include "text/textkit_call.h"

namespace bodega::text {
namespace {

enum Mode : std::int32_t { kOrdinary = 0, kParseSpecial = 1, kRendered = 2 };

std::vector<textkit_view> views_of(const std::vector<std::string>& texts) {
  std::vector<textkit_view> views;
  views.reserve(texts.size());
  for (const std::string& text : texts) views.push_back(view_of(text));
  return views;
}

}  // namespace

struct Tokenizer::Handle {
  explicit Handle(textkit_tokenizer* owned) : tokenizer(owned) {}
  ~Handle() { textkit_tokenizer_free(tokenizer); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  textkit_tokenizer* tokenizer;
};

Tokenizer::~Tokenizer() = default;

const textkit_tokenizer* Tokenizer::native() const { return handle_->tokenizer; }

std::unique_ptr<Tokenizer> Tokenizer::from_json(std::string_view tokenizer_json) {
  std::unique_ptr<Tokenizer> made(new Tokenizer);
  made->handle_ = std::make_unique<Handle>(
      call<textkit_tokenizer*>(textkit_tokenizer_from_json, view_of(tokenizer_json)));
  return made;
}

std::unique_ptr<Tokenizer> Tokenizer::from_gguf(const core::GgufVocabulary& vocabulary) {
  const std::vector<textkit_view> tokens = views_of(vocabulary.tokens);
  const std::vector<textkit_view> merges = views_of(vocabulary.merges);
  const textkit_gguf file = {
      .model = view_of(vocabulary.model),
      .pre = view_of(vocabulary.pre),
      .tokens = tokens.data(),
      .token_count = tokens.size(),
      .types = vocabulary.types.data(),
      .type_count = vocabulary.types.size(),
      .scores = vocabulary.scores.data(),
      .score_count = vocabulary.scores.size(),
      .merges = merges.data(),
      .merge_count = merges.size(),
      .bos = vocabulary.bos,
      .eos = vocabulary.eos,
      .unknown = vocabulary.unknown,
      .add_bos = vocabulary.add_bos,
      .add_eos = vocabulary.add_eos,
      .add_space_prefix = vocabulary.add_space_prefix,
  };
  std::unique_ptr<Tokenizer> made(new Tokenizer);
  made->handle_ =
      std::make_unique<Handle>(call<textkit_tokenizer*>(textkit_tokenizer_from_gguf, &file));
  return made;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special,
                                       bool parse_special) const {
  const Mode mode = parse_special ? kParseSpecial : kOrdinary;
  return take(call<textkit_ids>(textkit_tokenizer_encode, handle_->tokenizer, view_of(text), mode,
                                add_special));
}

std::string Tokenizer::guard(std::string_view message_text) const {
  return take(
      call<textkit_text>(textkit_tokenizer_guard, handle_->tokenizer, view_of(message_text)));
}

std::vector<TokenId> Tokenizer::encode_rendered(std::string_view prompt) const {
  return take(call<textkit_ids>(textkit_tokenizer_encode, handle_->tokenizer, view_of(prompt),
                                kRendered, false));
}

std::string Tokenizer::unguard(std::string_view text) {
  return take(call<textkit_text>(textkit_unguard, view_of(text)));
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  return take(call<textkit_text>(textkit_tokenizer_decode, handle_->tokenizer, ids.data(),
                                 ids.size(), skip_special));
}

std::optional<TokenId> Tokenizer::token_to_id(std::string_view token) const {
  const TokenId id = textkit_tokenizer_find(handle_->tokenizer, view_of(token));
  return id < 0 ? std::nullopt : std::optional<TokenId>(id);
}

std::string Tokenizer::id_to_token(TokenId id) const {
  return take(textkit_tokenizer_token(handle_->tokenizer, id, false));
}

std::string Tokenizer::token_bytes(TokenId id) const {
  return take(textkit_tokenizer_token(handle_->tokenizer, id, true));
}

bool Tokenizer::is_special(TokenId id) const {
  return textkit_tokenizer_is_special(handle_->tokenizer, id);
}

int Tokenizer::vocab_size() const { return textkit_tokenizer_vocab_size(handle_->tokenizer); }

struct StreamDecoder::Handle {
  explicit Handle(textkit_stream* owned) : stream(owned) {}
  ~Handle() { textkit_stream_free(stream); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  textkit_stream* stream;
};

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)),
      handle_(std::make_unique<Handle>(
          textkit_stream_new(tokenizer_->handle_->tokenizer, skip_special))) {}

StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

void StreamDecoder::prime(std::span<const TokenId> context) {
  for (const TokenId id : context) push(id);
}

std::string StreamDecoder::push(TokenId id) {
  return take(call<textkit_text>(textkit_stream_push, handle_->stream, id));
}

std::string StreamDecoder::flush() {
  return take(call<textkit_text>(textkit_stream_flush, handle_->stream));
}

}  // namespace bodega::text
