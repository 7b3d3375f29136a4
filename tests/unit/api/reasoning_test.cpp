#include "api/reasoning.h"

#include <gtest/gtest.h>

#include <vector>

namespace bodega::api {
namespace {

ReasoningSplitter::Piece split(Reasoning reasoning, const std::vector<std::string>& pieces) {
  ReasoningSplitter splitter(reasoning);
  ReasoningSplitter::Piece all;
  const auto add = [&all](const ReasoningSplitter::Piece& piece) {
    all.reasoning += piece.reasoning;
    all.content += piece.content;
  };
  for (const std::string& piece : pieces) add(splitter.push(piece));
  add(splitter.finish());
  return all;
}

struct Case {
  Reasoning reasoning;
  std::string text;
  std::string thought;
  std::string content;
};

class Splitting : public testing::TestWithParam<Case> {};

TEST_P(Splitting, IsTheSameHoweverTheTextIsCut) {
  const auto& [reasoning, text, thought, content] = GetParam();
  std::vector<std::vector<std::string>> cuts{{text}, {}};
  for (const char c : text) cuts[1].emplace_back(1, c);
  for (std::size_t a = 0; a <= text.size(); ++a) {
    for (std::size_t b = a; b <= text.size(); ++b) {
      cuts.push_back({text.substr(0, a), text.substr(a, b - a), text.substr(b)});
    }
  }
  for (const auto& pieces : cuts) {
    const ReasoningSplitter::Piece all = split(reasoning, pieces);
    ASSERT_EQ(all.reasoning, thought);
    ASSERT_EQ(all.content, content);
  }
}

constexpr auto kNone = Reasoning::kNone;
constexpr auto kMay = Reasoning::kMayOpen;
constexpr auto kOpen = Reasoning::kOpen;

INSTANTIATE_TEST_SUITE_P(
    Texts, Splitting,
    testing::Values(
        Case{kMay, "<think>\nseven\nfirst\n</think>\n\n42", "seven\nfirst", "42"},
        Case{kMay, "\n <think>a</think>b", "a", "b"},
        Case{kOpen, "\nseven first\n</think>\n\nIt is 42.", "seven first", "It is 42."},
        Case{kMay, "<think>\n\n</think>\n\nNo thought.", "", "No thought."},
        // Cut by the budget: all of it is thought, also the beginning of a tag.
        Case{kMay, "<think>still thin", "still thin", ""},
        Case{kOpen, "still </thi", "still </thi", ""}, Case{kOpen, "done</think>", "done", ""},
        // Fault 10: only a real leading block counts.
        Case{kMay, "Use `<think>` and `</think>` here.", "", "Use `<think>` and `</think>` here."},
        Case{kMay, "  two blanks", "", "  two blanks"}, Case{kMay, "<thin", "", "<thin"},
        Case{kMay, "<think>a</think>b <think>c</think>", "a", "b <think>c</think>"},
        Case{kMay, "</think>x", "", "</think>x"}, Case{kMay, "", "", ""},
        Case{kNone, "<think>a</think>b", "", "<think>a</think>b"}));

}  // namespace
}  // namespace bodega::api
