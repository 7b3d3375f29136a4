#include "sample/row_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sample/exp_negative.h"
#include "sample/logprobs.h"

namespace bodega::sample {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(RowMath, ExpIsCloseEverywhere) {
  for (float x = 0.0F; x > -87.0F; x -= 0.00137F) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(exp_negative(x)) / exact, 1.0, 2e-7) << x;
  }
  EXPECT_EQ(exp_negative(0.0F), 1.0F);
  EXPECT_EQ(exp_negative(-kInf), 0.0F);
  EXPECT_EQ(exp_negative(std::numeric_limits<float>::quiet_NaN()), 0.0F);
}

TEST(RowMath, ArgmaxIsTheLowestIdOfTheLargest) {
  for (const std::size_t size : {1U, 15U, 16U, 17U, 1000U}) {
    for (std::size_t at = 0; at < size; at += 1 + size / 37) {
      std::vector<float> row(size, -1.0F);
      row[at] = 3.0F;
      row[size - 1] = 3.0F;
      EXPECT_EQ(argmax(row), static_cast<TokenId>(at));
    }
  }
}

TEST(RowMath, ArgmaxPassesOverNanAndKnowsAnEmptyRow) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> row(40, nan);
  EXPECT_EQ(argmax(row), -1);
  row[21] = -5.0F;
  EXPECT_EQ(argmax(row), 21);
  EXPECT_EQ(argmax(std::vector<float>(40, -kInf)), -1);
}

TEST(RowMath, SumOfExponentialsMatchesDouble) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 6);
  for (const std::size_t size : {1U, 7U, 16U, 1001U, 49'152U}) {
    std::vector<float> row(size);
    for (float& x : row) x = normal(random);
    const float best = max_of(row);
    double exact = 0;
    for (const float x : row) exact += std::exp(static_cast<double>(x) - static_cast<double>(best));
    EXPECT_NEAR(sum_exp(row, best, 1.0F) / exact, 1.0, 5e-7) << size;
    EXPECT_NEAR(log_sum_exp(row, best), std::log(exact) + static_cast<double>(best), 1e-6);
  }
}

TEST(Logprobs, AreNormalisedSortedAndFinite) {
  std::vector<float> row = {1.0F, 3.0F, -kInf, 3.0F, 0.5F};
  const core::TokenLogprob result = token_logprob(row, 2, 5);
  EXPECT_EQ(result.logprob, kLowestLogprob);
  ASSERT_EQ(result.top.size(), 4U);  // minus infinity is no alternative
  EXPECT_EQ(result.top[0].first, 1);
  EXPECT_EQ(result.top[1].first, 3);
  EXPECT_EQ(result.top[2].first, 0);
  double sum = 0;
  for (const auto& [_, logprob] : result.top) sum += std::exp(static_cast<double>(logprob));
  EXPECT_NEAR(sum, 1.0, 1e-6);
  EXPECT_TRUE(token_logprob(row, 0, 0).top.empty());
}

}  // namespace
}  // namespace bodega::sample
