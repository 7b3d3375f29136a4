#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <map>

#include "../support/effort.h"
#include "base/errors.h"
#include "reference.h"

namespace bodega::sample {
namespace {

Row row_of(const std::vector<float>& logits, const core::SamplingParams& params) {
  Row row;
  row.logits = logits;
  row.params = &params;
  return row;
}

TEST(Sampler, GreedyTakesTheLowestIdAmongTheBest) {
  Sampler sampler;
  core::SamplingParams params;
  params.temperature = 0;
  EXPECT_EQ(sampler.sample(row_of({1, 7, 7, 3}, params)), 1);
}

TEST(Sampler, EqualsTheReferenceToTheToken) {
  std::mt19937 random(23);
  Sampler sampler;
  for (int trial = 0; trial < effort(600); ++trial) {
    const int vocab = 1 + static_cast<int>(random() % 6000);
    const std::vector<float> logits = reference::random_logits(random, vocab);
    core::SamplingParams params;
    params.seed = (std::uint64_t{random()} << 32) | random();
    params.temperature = static_cast<float>(random() % 21) / 10.0F;
    if (random() % 4 == 0) params.top_k = 1 + static_cast<int>(random() % 100);
    if (random() % 4 == 0) params.top_p = 0.9F;
    if (random() % 4 == 0) params.min_p = 0.05F;
    if (random() % 4 == 0) params.logit_bias[static_cast<TokenId>(random() % logits.size())] = 3.0F;
    const Row row = [&] {
      Row r = row_of(logits, params);
      r.choice = static_cast<int>(random() % 4);
      r.position = static_cast<int>(random() % 5000);
      return r;
    }();
    ASSERT_EQ(sampler.sample(row), reference::sample(row)) << "trial " << trial;
  }
}

// The shortcut over the whole vocabulary may never miss a winner: flat rows make every id a
// contender.
TEST(Sampler, EqualsTheReferenceOnFlatRows) {
  Sampler sampler;
  core::SamplingParams params;
  for (const float temperature : {0.5F, 1.0F, 2.0F}) {
    params.temperature = temperature;
    const std::vector<float> logits(5000, 1.5F);
    for (int position = 0; position < effort(60); ++position) {
      Row row = row_of(logits, params);
      row.position = position;
      ASSERT_EQ(sampler.sample(row), reference::sample(row));
    }
  }
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits = {2.0F, 1.0F, 0.5F, 0.0F, -1.0F, -2.0F};
  for (const float temperature : {0.7F, 1.0F, 1.8F}) {
    core::SamplingParams params;
    params.temperature = temperature;
    params.seed = 42;
    constexpr int kDraws = 60'000;
    std::map<TokenId, int> counts;
    Sampler sampler;
    for (int i = 0; i < kDraws; ++i) {
      Row row = row_of(logits, params);
      row.position = i;
      ++counts[sampler.sample(row)];
    }
    double total = 0;
    for (const float l : logits) total += std::exp(static_cast<double>(l / temperature));
    double chi_square = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double expected =
          kDraws * std::exp(static_cast<double>(logits[i] / temperature)) / total;
      chi_square += std::pow(counts[static_cast<TokenId>(i)] - expected, 2) / expected;
    }
    EXPECT_LT(chi_square, 20.5);  // 5 degrees of freedom, exceeded once in a thousand
  }
}

TEST(Sampler, LargeVocabularyFollowsTheSoftmaxToo) {
  std::mt19937 random(9);
  const std::vector<float> logits = reference::random_logits(random, 4096);
  core::SamplingParams params;
  params.seed = 1;
  Sampler sampler;
  constexpr int kDraws = 20'000;
  constexpr int kBins = 16;
  std::vector<double> expected(kBins);
  std::vector<int> counts(kBins);
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    expected[i % kBins] += std::exp(static_cast<double>(logits[i]));
    total += std::exp(static_cast<double>(logits[i]));
  }
  for (int i = 0; i < kDraws; ++i) {
    Row row = row_of(logits, params);
    row.position = i;
    ++counts[static_cast<std::size_t>(sampler.sample(row)) % kBins];
  }
  double chi_square = 0;
  for (std::size_t bin = 0; bin < kBins; ++bin) {
    const double e = expected[bin] / total * kDraws;
    chi_square += std::pow(counts[bin] - e, 2) / e;
  }
  EXPECT_LT(chi_square, 37.7);  // 15 degrees of freedom, exceeded once in a thousand
}

TEST(Sampler, SeedChoiceAndPositionDecideAndNothingElse) {
  std::mt19937 random(31);
  std::vector<std::vector<float>> rows;
  std::vector<core::SamplingParams> params(6);
  for (std::size_t i = 0; i < params.size(); ++i) {
    rows.push_back(reference::random_logits(random, 3000));
    params[i].seed = i / 2;
    params[i].temperature = i % 3 == 0 ? 0.0F : 1.0F;
    if (i % 2 == 1) params[i].logit_bias[7] = 2.0F;
  }
  std::vector<TokenId> alone;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Sampler fresh;
    alone.push_back(fresh.sample(row_of(rows[i], params[i])));
  }
  Sampler shared;  // every order of neighbours, with scratch left over from them
  std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5};
  do {
    for (const std::size_t i : order) {
      ASSERT_EQ(shared.sample(row_of(rows[i], params[i])), alone[i]);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Sampler, PenaltiesMatchTheReference) {
  std::mt19937 random(77);
  Sampler sampler;
  for (int trial = 0; trial < effort(200); ++trial) {
    const std::vector<float> logits = reference::random_logits(random, 500);
    std::vector<TokenId> prompt(50);
    for (TokenId& id : prompt) id = static_cast<TokenId>(random() % 500);
    History history(prompt);
    for (int i = 0; i < 40; ++i) history.add(static_cast<TokenId>(random() % 60));
    core::SamplingParams params;
    params.temperature = trial % 2 == 0 ? 0.0F : 1.0F;
    params.repetition_penalty = 1.0F + static_cast<float>(random() % 10) / 10.0F;
    params.presence_penalty = static_cast<float>(random() % 5) / 2.0F - 1.0F;
    params.frequency_penalty = static_cast<float>(random() % 5) / 2.0F - 1.0F;
    params.logit_bias[static_cast<TokenId>(random() % 500)] = 5.0F;
    const TokenId ends[] = {3, 4};
    Row row = row_of(logits, params);
    row.history = &history;
    row.banned = ends;
    row.position = trial;
    ASSERT_EQ(sampler.sample(row), reference::sample(row)) << trial;
  }
}

TEST(Sampler, ABannedBestIsNotChosen) {
  Sampler sampler;
  core::SamplingParams params;
  params.temperature = 0;
  const std::vector<float> logits = {0, 9, 5};
  const TokenId ends[] = {1};
  Row row = row_of(logits, params);
  row.banned = ends;
  EXPECT_EQ(sampler.sample(row), 2);
}

TEST(Sampler, OneBrokenRowIsAnErrorNotAToken) {
  Sampler sampler;
  core::SamplingParams params;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float temperature : {0.0F, 1.0F}) {
    params.temperature = temperature;
    EXPECT_THROW(sampler.sample(row_of({nan, nan}, params)), Error);
    EXPECT_THROW(sampler.sample(row_of({1, std::numeric_limits<float>::infinity()}, params)),
                 Error);
    EXPECT_EQ(sampler.sample(row_of({nan, 1}, params)), 1);
  }
}

// Pinned so that a change of the noise or the contest is seen: a logged seed has to replay.
TEST(Sampler, GoldenTokens) {
  std::vector<float> logits(50'000);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 2654435761U) % 4096) / 256.0F;
  }
  core::SamplingParams params;
  params.seed = 2024;
  Sampler sampler;
  std::vector<TokenId> tokens;
  for (int position = 0; position < 6; ++position) {
    Row row = row_of(logits, params);
    row.position = position;
    tokens.push_back(sampler.sample(row));
  }
  EXPECT_EQ(tokens, (std::vector<TokenId>{45820, 17462, 31878, 33255, 8296, 27219}));
}

}  // namespace
}  // namespace bodega::sample
