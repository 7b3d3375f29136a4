#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/reasoning.h"
#include "text/tool_parser.h"

namespace bodega::api {

using MakeToolParser = std::function<std::unique_ptr<text::ToolParser>()>;  // null: no calls

struct AnswerPiece {
  std::string reasoning;
  std::string content;
  std::vector<text::ToolCall> calls;  // with ids
};

// One choice's text on its way to a client: thought, content and calls, in any cutting the same.
class AnswerParts {
 public:
  AnswerParts(Reasoning reasoning, const MakeToolParser& make_parser, bool parallel_calls);

  AnswerPiece push(std::string_view text);
  AnswerPiece finish();  // after the last push

  bool thinking() const;
  bool called() const { return calls_ > 0; }

 private:
  AnswerPiece take(ReasoningSplitter::Piece piece, bool last);

  ReasoningSplitter splitter_;
  std::unique_ptr<text::ToolParser> parser_;
  bool parallel_;
  int calls_ = 0;
};

}  // namespace bodega::api
