#include "cli/token_diff.h"

#include <gtest/gtest.h>

namespace bodega::cli {
namespace {

using Choices = std::vector<std::vector<core::TokenId>>;

void expect_difference(const Choices& before, const Choices& now, std::size_t choice,
                       std::size_t token) {
  const auto difference = first_difference(before, now);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->choice, choice);
  EXPECT_EQ(difference->token, token);
}

TEST(FirstDifference, IsNothingForEqualAnswers) {
  EXPECT_FALSE(first_difference({}, {}));
  EXPECT_FALSE(first_difference({{1, 2}, {}}, {{1, 2}, {}}));
}

TEST(FirstDifference, FindsTheToken) {
  expect_difference({{1, 2, 3}}, {{1, 9, 3}}, 0, 1);
  expect_difference({{1}, {5, 6}}, {{1}, {5, 7}}, 1, 1);
}

TEST(FirstDifference, FindsTheEndOfTheShorter) {
  expect_difference({{1, 2}}, {{1}}, 0, 1);
  expect_difference({{1}}, {{1, 2}}, 0, 1);
  expect_difference({{1}}, {{1}, {2}}, 1, 0);
}

}  // namespace
}  // namespace bodega::cli
