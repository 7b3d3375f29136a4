#include "api/answer_parts.h"

#include <random>
#include <utility>

namespace bodega::api {
namespace {

// Nine letters and digits: the form that every template takes (Mistral's takes no other).
std::string new_call_id() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string id;
  for (int i = 0; i < 9; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

void append(text::ParsedText& into, text::ParsedText more) {
  into.reasoning += more.reasoning;
  into.content += more.content;
  for (text::ToolCall& call : more.calls) into.calls.push_back(std::move(call));
}

}  // namespace

AnswerParts::AnswerParts(Reasoning reasoning, const MakeToolParser& make_parser,
                         bool parallel_calls)
    : splitter_(reasoning),
      parser_(make_parser ? make_parser() : nullptr),
      parallel_(parallel_calls) {}

AnswerPiece AnswerParts::push(std::string_view text) { return take(splitter_.push(text), false); }

AnswerPiece AnswerParts::finish() { return take(splitter_.finish(), true); }

bool AnswerParts::thinking() const {
  return splitter_.inside() || (parser_ != nullptr && parser_->thinking());
}

AnswerPiece AnswerParts::take(ReasoningSplitter::Piece piece, bool last) {
  if (parser_ == nullptr) return {std::move(piece.reasoning), std::move(piece.content), {}};
  text::ParsedText parsed = parser_->push(piece.content);
  if (last) append(parsed, parser_->finish());
  AnswerPiece out{piece.reasoning + parsed.reasoning, std::move(parsed.content), {}};
  for (text::ToolCall& call : parsed.calls) {
    if (!parallel_ && calls_ > 0) break;
    ++calls_;
    if (call.id.empty()) call.id = new_call_id();
    out.calls.push_back(std::move(call));
  }
  return out;
}

}  // namespace bodega::api
