#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/gguf_vocabulary.h"
#include "core/request.h"

namespace bodega::text {

using core::TokenId;

// Thread-safe after construction. Throws Error(kBadModelFile) for what it cannot build.
class Tokenizer {
 public:
  static std::unique_ptr<Tokenizer> from_json(std::string_view tokenizer_json);
  static std::unique_ptr<Tokenizer> from_gguf(const core::GgufVocabulary& vocabulary);
  ~Tokenizer();

  // `parse_special`: text that spells an added control token becomes it (rendered templates); false
  // for message text and /tokenize by default. `add_special`: post-processor's bos/eos.
  std::vector<TokenId> encode(std::string_view text, bool add_special, bool parse_special) const;
  std::string decode(std::span<const TokenId> ids, bool skip_special) const;
  std::optional<TokenId> token_to_id(std::string_view token) const;
  std::string id_to_token(TokenId id) const;   // vocabulary form, "" for a hole
  std::string token_bytes(TokenId id) const;   // the bytes it stands for
  bool is_special(TokenId id) const;
  int vocab_size() const;                      // highest id + 1

 private:
  friend class StreamDecoder;
  Tokenizer() = default;
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

// Turns tokens into text as they come; never cuts a character. Joined pieces equal the whole decode.
class StreamDecoder {
 public:
  StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special);
  // `context`: tokens before the answer (the last few of the prompt), so leading spaces are right.
  void prime(std::span<const TokenId> context);
  std::string push(TokenId id);   // "" while a character is unfinished
  std::string flush();            // what is left at the end; unfinished bytes become U+FFFD
  ~StreamDecoder();
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;

 private:
  struct Handle;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Handle> handle_;
};

}  // namespace bodega::text
