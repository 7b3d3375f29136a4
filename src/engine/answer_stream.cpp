#include "engine/answer_stream.h"

#include <utility>

namespace bodega::engine {

AnswerStream::AnswerStream(std::unique_ptr<Detokenizer> detokenizer, const core::StopParams& stop)
    : detokenizer_(std::move(detokenizer)),
      matcher_(stop.stop, stop.include_stop_str_in_output),
      min_tokens_(stop.min_tokens) {}

void AnswerStream::take(const std::string& text, bool searched) {
  text_bytes_ += text.size();
  ready_ += searched ? matcher_.feed(text) : text;
}

void AnswerStream::push(core::TokenLogprob token, bool shown) {
  ++tokens_;
  if (shown) take(detokenizer_->push(token.id), tokens_ > min_tokens_);
  held_.push_back({std::move(token), text_bytes_});
}

void AnswerStream::finish(bool cut) {
  const std::string rest = detokenizer_->flush();
  if (!cut) take(rest, tokens_ > min_tokens_);
  if (!stopped()) ready_ += matcher_.flush();
  ended_ = true;
}

bool AnswerStream::drain(core::ChoiceOutput& out, bool with_logprobs) {
  const std::size_t settled = text_bytes_ - matcher_.held_bytes();
  while (!held_.empty() && (ended_ || stopped() || held_.front().text_end <= settled)) {
    core::TokenLogprob& token = held_.front().token;
    out.tokens.push_back(token.id);
    if (with_logprobs) out.logprobs.push_back(std::move(token));
    held_.pop_front();
  }
  out.text = std::exchange(ready_, {});
  return !out.text.empty() || !out.tokens.empty();
}

}  // namespace bodega::engine
