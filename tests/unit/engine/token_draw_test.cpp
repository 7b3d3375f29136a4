#include "engine/token_draw.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace bodega::engine {
namespace {

TEST(TokenDrawer, ThreadsChangeNothing) {
  constexpr std::size_t kVocab = 30'000;
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 3);
  std::vector<std::vector<float>> logits(24, std::vector<float>(kVocab));
  std::vector<core::SamplingParams> params(logits.size());
  std::vector<TokenDraw> draws(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    for (float& l : logits[i]) l = normal(random);
    params[i].seed = i;
    params[i].temperature = i % 4 == 0 ? 0.0F : 0.9F;
    params[i].logprobs = i % 3 == 0;
    params[i].top_logprobs = 4;
    if (i % 5 == 0) params[i].logit_bias[7] = 12;
    draws[i].row.logits = logits[i];
    draws[i].row.params = &params[i];
    draws[i].row.position = static_cast<int>(i);
  }
  std::fill(logits[9].begin(), logits[9].end(), std::numeric_limits<float>::quiet_NaN());
  draws[10].scripted = 77;
  std::vector<TokenDraw> one_thread = draws;
  TokenDrawer(1).draw(one_thread);
  TokenDrawer threads(4);
  for (int round = 0; round < 20; ++round) {
    std::vector<TokenDraw> many = draws;
    threads.draw(many);
    for (std::size_t i = 0; i < many.size(); ++i) {
      ASSERT_EQ(many[i].token.id, one_thread[i].token.id) << i;
      ASSERT_EQ(many[i].token.logprob, one_thread[i].token.logprob);
      ASSERT_EQ(many[i].token.top, one_thread[i].token.top);
      ASSERT_EQ(many[i].error.empty(), i != 9);
    }
    ASSERT_EQ(many[10].token.id, 77);
  }
}

}  // namespace
}  // namespace bodega::engine
