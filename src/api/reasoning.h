#pragma once

#include <string>
#include <string_view>

namespace bodega::api {

// Whether an answer may begin with a block of thought.
enum class Reasoning {
  kNone,     // the model's template knows none: a tag in the text is text
  kMayOpen,  // the answer may begin with <think>
  kOpen,     // the prompt has opened the block already
};

// Cuts an answer into the thought of a leading <think> block and the rest, piece by piece; any
// cutting of the same text gives the same two. Only a block at the very beginning counts (blanks
// before it do not matter): a tag that comes later is text. Blanks at the edges of the block are
// dropped.
class ReasoningSplitter {
 public:
  explicit ReasoningSplitter(Reasoning reasoning);

  struct Piece {
    std::string reasoning;
    std::string content;
  };
  Piece push(std::string_view text);
  Piece finish();  // what was held back; after the last push

  bool inside() const { return state_ == State::kInside; }

 private:
  enum class State { kBefore, kInside, kAfter, kContent };

  void look_for_opening();
  void look_for_closing(Piece& piece);
  void drop_blanks_after();

  State state_;
  bool any_thought_ = false;  // blanks before the first thought are dropped
  std::string held_;          // may still become a tag, or blanks that may be at an edge
};

}  // namespace bodega::api
