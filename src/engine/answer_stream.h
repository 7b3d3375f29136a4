#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "core/output.h"
#include "core/request.h"
#include "engine/stop_matcher.h"
#include "engine/text_codec.h"

namespace bodega::engine {

// The way of one choice's tokens into text: decoding, stop strings, and tokens that wait with their
// text while it could still become a stop string.
class AnswerStream {
 public:
  AnswerStream(std::unique_ptr<Detokenizer> detokenizer, const core::StopParams& stop);

  // `shown`: false for the token that ends the answer. Must not be called after stopped().
  void push(core::TokenLogprob token, bool shown);
  // The answer has ended by a token or its length; the rest of the text may still hold a stop
  // string. `cut`: by its length, so the beginning of a character is dropped, not shown as U+FFFD.
  void finish(bool cut = false);

  bool stopped() const { return matcher_.matched(); }
  const std::string& stop_string() const { return matcher_.stop(); }

  // Moves what may be sent into `out`; false when there is nothing.
  bool drain(core::ChoiceOutput& out, bool with_logprobs);

 private:
  struct Held {
    core::TokenLogprob token;
    std::size_t text_end;  // bytes of the answer up to and with this token's text
  };

  void take(const std::string& text, bool searched);

  std::unique_ptr<Detokenizer> detokenizer_;
  StopMatcher matcher_;
  int min_tokens_;
  int tokens_ = 0;
  std::size_t text_bytes_ = 0;  // decoded so far
  bool ended_ = false;
  std::string ready_;
  std::deque<Held> held_;
};

}  // namespace bodega::engine
