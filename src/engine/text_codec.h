#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/request.h"

namespace bodega::engine {

// Turns the tokens of one answer into text as they come; never cuts a character.
class Detokenizer {
 public:
  virtual ~Detokenizer() = default;
  virtual std::string push(core::TokenId id) = 0;  // "" while a character is unfinished
  virtual std::string flush() = 0;                 // what is left at the end
};

// All the engine has to know of a tokenizer; text::Tokenizer stands behind it, or a test.
class TextCodec {
 public:
  virtual ~TextCodec() = default;
  // `context`: the last tokens of the prompt, so that leading spaces are right. `shown`: control
  // tokens that are spelt out; the others have no text.
  virtual std::unique_ptr<Detokenizer> detokenizer(std::span<const core::TokenId> context,
                                                   std::span<const core::TokenId> shown) const = 0;
  virtual std::string token_text(core::TokenId id) const = 0;
};

}  // namespace bodega::engine
