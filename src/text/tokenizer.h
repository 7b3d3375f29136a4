#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/gguf_vocabulary.h"
#include "core/request.h"

struct textkit_tokenizer;

namespace bodega::text {

using core::TokenId;

// Thread-safe after construction. Throws Error(kBadModelFile) for what it cannot build.
class Tokenizer {
 public:
  // A Hugging Face tokenizer.json. Its truncation, padding and dropout are ignored.
  static std::unique_ptr<Tokenizer> from_json(std::string_view tokenizer_json);
  // BPE by its `pre` type, or SentencePiece; an unknown type is refused by name.
  static std::unique_ptr<Tokenizer> from_gguf(const core::GgufVocabulary& vocabulary);
  ~Tokenizer();

  // `parse_special`: text that spells an added control token becomes it; false for message text and
  // /tokenize by default. `add_special`: post-processor's bos/eos. The text must be UTF-8: else
  // Error(kInvalidRequest).
  std::vector<TokenId> encode(std::string_view text, bool add_special, bool parse_special) const;

  // Message text never becomes a control token. `guard` breaks every spelling of one in a string of
  // a message, so that template logic (trim, split, startswith) still sees the text; the rendered
  // prompt goes through `encode_rendered`, which parses the control tokens that the template wrote,
  // drops the marks and adds no bos or eos. Added tokens that are no control tokens (</think>) are
  // not broken.
  std::string guard(std::string_view message_text) const;
  std::vector<TokenId> encode_rendered(std::string_view prompt) const;
  // Text with the marks of `guard` taken out: for showing a rendered prompt.
  static std::string unguard(std::string_view text);

  std::string decode(std::span<const TokenId> ids, bool skip_special) const;
  std::optional<TokenId> token_to_id(std::string_view token) const;
  std::string id_to_token(TokenId id) const;  // vocabulary form, "" for a hole
  std::string token_bytes(TokenId id) const;  // the bytes it stands for
  bool is_special(TokenId id) const;
  int vocab_size() const;  // highest id + 1

 private:
  friend class StreamDecoder;
  friend class GrammarCompiler;
  Tokenizer() = default;
  const textkit_tokenizer* native() const;
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

// Turns tokens into text as they come; never cuts a character. Joined pieces equal the whole
// decode.
class StreamDecoder {
 public:
  StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special);
  // `context`: tokens before the answer (the last few of the prompt), so leading spaces are right.
  void prime(std::span<const TokenId> context);
  std::string push(TokenId id);  // "" while a character is unfinished
  std::string flush();           // what is left at the end; unfinished bytes become U+FFFD
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

 private:
  struct Handle;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Handle> handle_;
};

}  // namespace bodega::text
