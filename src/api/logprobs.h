#pragma once

#include <span>
#include <string>

#include "api/answer.h"

namespace bodega::api {

// A token as logprobs objects spell it: its text, or "bytes:\xe2\x82" where it is part of a
// character.
std::string token_text(std::string_view bytes);

// A log-probability that JSON can hold: minus infinity and NaN become -9999.
double finite_logprob(float value);

// The entries of a chat choice's logprobs.content.
json::array chat_logprobs(std::span<const core::TokenLogprob> tokens, const TokenBytes& bytes_of);

// The legacy object of completions: four lists side by side. It grows token by token; offsets count
// characters of the choice's text.
class LegacyLogprobs {
 public:
  explicit LegacyLogprobs(const TokenBytes& bytes_of) : bytes_of_(bytes_of) {}

  void add(const core::TokenLogprob& token);
  void add_unknown(core::TokenId id);  // the first token of a prompt, which nothing predicted
  bool empty() const { return tokens_.empty(); }
  json::object take();  // what was added since the last call

 private:
  void add_text(core::TokenId id);

  const TokenBytes& bytes_of_;
  json::array tokens_;
  json::array values_;
  json::array tops_;
  json::array offsets_;
  int offset_ = 0;
};

}  // namespace bodega::api
