#include "sample/survivors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "../support/effort.h"
#include "reference.h"
#include "sample/row_math.h"

namespace bodega::sample {
namespace {

std::vector<TokenId> ids(const std::vector<Candidate>& candidates) {
  std::vector<TokenId> result;
  for (const Candidate& c : candidates) result.push_back(c.id);
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<TokenId> survivors(const std::vector<float>& logits, const core::SamplingParams& p) {
  std::vector<Candidate> out;
  find_survivors(logits, max_of(logits), p, out);
  return ids(out);
}

TEST(Survivors, TopKBreaksTiesByTheLowestId) {
  core::SamplingParams params;
  params.top_k = 2;
  EXPECT_EQ(survivors({1, 5, 3, 3, 3}, params), (std::vector<TokenId>{1, 2}));
}

TEST(Survivors, TopPKeepsTheIdThatCrossesTheBorder) {
  core::SamplingParams params;  // probabilities 0.5, 0.25, 0.125, 0.125
  const std::vector<float> logits = {std::log(4.0F), std::log(2.0F), 0, 0};
  params.top_p = 0.51F;
  EXPECT_EQ(survivors(logits, params), (std::vector<TokenId>{0, 1}));
  params.top_p = 0.49F;
  EXPECT_EQ(survivors(logits, params), (std::vector<TokenId>{0}));
  params.top_p = 0.8F;
  EXPECT_EQ(survivors(logits, params), (std::vector<TokenId>{0, 1, 2}));
}

TEST(Survivors, TopPOfAFlatRowTakesTheLowestIds) {
  core::SamplingParams params;
  params.top_p = 0.25F;
  const std::vector<TokenId> kept = survivors(std::vector<float>(1000, 2.0F), params);
  ASSERT_EQ(kept.size(), 250U);
  EXPECT_EQ(kept.back(), 249);
}

TEST(Survivors, MinPIsRelativeToTheBest) {
  core::SamplingParams params;
  params.min_p = 0.3F;
  const std::vector<float> logits = {0, std::log(0.31F), std::log(0.29F)};
  EXPECT_EQ(survivors(logits, params), (std::vector<TokenId>{0, 1}));
  params.min_p = 1.0F;
  EXPECT_EQ(survivors(logits, params), (std::vector<TokenId>{0}));
}

TEST(Survivors, NothingFarBelowTheBestIsLeft) {
  core::SamplingParams params;
  params.top_k = 4;
  EXPECT_EQ(survivors({0, -29.9F, -30.1F, -100}, params), (std::vector<TokenId>{0, 1}));
  params.temperature = 2.0F;
  EXPECT_EQ(survivors({0, -29.9F, -30.1F, -100}, params), (std::vector<TokenId>{0, 1, 2}));
}

TEST(Survivors, MatchTheReferenceOnRandomRows) {
  std::mt19937 random(17);
  for (int trial = 0; trial < effort(1500); ++trial) {
    const std::vector<float> logits =
        reference::random_logits(random, 1 + static_cast<int>(random() % 3000));
    core::SamplingParams params;
    params.temperature = 0.1F + static_cast<float>(random() % 20) / 10.0F;
    if (random() % 2 == 0) params.top_k = 1 + static_cast<int>(random() % 400);
    if (random() % 2 == 0) params.top_p = static_cast<float>(1 + random() % 99) / 100.0F;
    if (random() % 3 == 0) params.min_p = static_cast<float>(random() % 100) / 1000.0F;
    if (random() % 3 == 0) params.typical_p = static_cast<float>(1 + random() % 99) / 100.0F;
    std::vector<TokenId> expected;
    for (const auto& entry : reference::survivors({logits.begin(), logits.end()}, params)) {
      expected.push_back(entry.id);
    }
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(survivors(logits, params), expected)
        << "trial " << trial << " top_k " << params.top_k << " top_p " << params.top_p << " min_p "
        << params.min_p << " typical_p " << params.typical_p << " t " << params.temperature;
  }
}

TEST(FindTop, MatchesASort) {
  std::mt19937 random(5);
  for (int trial = 0; trial < effort(300); ++trial) {
    std::vector<float> row(1 + random() % 5000);
    for (float& x : row) x = static_cast<float>(random() % 50);  // many ties
    const int k = static_cast<int>(random() % 600);
    std::vector<TokenId> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return std::pair(-row[static_cast<std::size_t>(a)], a) <
             std::pair(-row[static_cast<std::size_t>(b)], b);
    });
    order.resize(std::min(order.size(), static_cast<std::size_t>(k)));
    std::vector<Candidate> top;
    find_top(row, k, top);
    ASSERT_EQ(top.size(), order.size());
    for (std::size_t i = 0; i < top.size(); ++i) ASSERT_EQ(top[i].id, order[i]);
  }
}

}  // namespace
}  // namespace bodega::sample
