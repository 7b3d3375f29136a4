#include "api/reasoning.h"

#include <algorithm>
#include <utility>

namespace bodega::api {
namespace {

constexpr std::string_view kOpening = "<think>";
constexpr std::string_view kClosing = "</think>";
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view without_leading_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
}

// Bytes at the end of `text` that are a beginning of `tag`.
std::size_t open_end(std::string_view text, std::string_view tag) {
  for (std::size_t size = std::min(text.size(), tag.size() - 1); size > 0; --size) {
    if (text.ends_with(tag.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

ReasoningSplitter::ReasoningSplitter(Reasoning reasoning)
    : state_(reasoning == Reasoning::kNone   ? State::kContent
             : reasoning == Reasoning::kOpen ? State::kInside
                                             : State::kBefore) {}

ReasoningSplitter::Piece ReasoningSplitter::push(std::string_view text) {
  held_ += text;
  Piece piece;
  if (state_ == State::kBefore) look_for_opening();
  if (state_ == State::kInside) look_for_closing(piece);
  if (state_ == State::kAfter) drop_blanks_after();
  if (state_ == State::kContent) piece.content += std::exchange(held_, {});
  return piece;
}

void ReasoningSplitter::look_for_opening() {
  const std::string_view text = without_leading_blanks(held_);
  if (text.starts_with(kOpening)) {
    held_ = text.substr(kOpening.size());
    state_ = State::kInside;
  } else if (!kOpening.starts_with(text)) {
    state_ = State::kContent;  // with its blanks: they are the answer's
  }
}

void ReasoningSplitter::look_for_closing(Piece& piece) {
  if (!any_thought_) held_ = std::string(without_leading_blanks(held_));
  const std::size_t at = held_.find(kClosing);
  const bool closed = at != std::string::npos;
  std::string_view thought(held_);
  thought = thought.substr(0, closed ? at : held_.size() - open_end(held_, kClosing));
  const std::size_t last = thought.find_last_not_of(kBlanks);
  thought = thought.substr(0, last == std::string_view::npos ? 0 : last + 1);
  any_thought_ = any_thought_ || !thought.empty();
  piece.reasoning += thought;
  if (closed) {
    held_ = held_.substr(at + kClosing.size());
    state_ = State::kAfter;
  } else {
    held_ = held_.substr(thought.size());
  }
}

void ReasoningSplitter::drop_blanks_after() {
  held_ = std::string(without_leading_blanks(held_));
  if (!held_.empty()) state_ = State::kContent;
}

ReasoningSplitter::Piece ReasoningSplitter::finish() {
  Piece piece;
  std::string left = std::exchange(held_, {});
  if (state_ == State::kBefore) piece.content = std::move(left);
  if (state_ == State::kInside && left.find_first_not_of(kBlanks) != std::string::npos) {
    piece.reasoning = std::move(left);  // the beginning of a closing tag that never came
  }
  return piece;
}

}  // namespace bodega::api
