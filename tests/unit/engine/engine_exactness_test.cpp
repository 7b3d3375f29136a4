#include <random>
#include <thread>

#include "engine_harness.h"

namespace bodega::engine {
namespace {

using core::FinishReason;

struct Situation {
  const char* name;
  int max_step_tokens;
  int max_sequences;
  int blocks;
  bool prefix_cache;
};

// However the engine batches, chunks, shares, evicts and preempts, an answer is the one that the
// model's definition gives to the request alone.
class EngineExactness : public EngineTest, public testing::WithParamInterface<Situation> {
 protected:
  core::Request random_request() {
    core::Request r;
    r.prompt = prompt_of(1 + static_cast<int>(random_() % 70), static_cast<int>(random_() % 3));
    r.stop.max_tokens = 1 + static_cast<int>(random_() % 60);
    r.sampling.seed = random_() % 5;
    r.sampling.temperature = random_() % 3 == 0 ? 0.0F : 0.8F;
    if (random_() % 4 == 0) r.sampling.top_p = 0.8F;
    if (random_() % 4 == 0) r.sampling.top_k = 9;
    if (random_() % 4 == 0) r.sampling.frequency_penalty = 1.0F;
    if (random_() % 4 == 0) r.sampling.repetition_penalty = 1.3F;
    if (random_() % 4 == 0) r.sampling.logit_bias[static_cast<core::TokenId>(random_() % 60)] = 2;
    if (random_() % 4 == 0) r.stop.min_tokens = r.stop.max_tokens / 2;
    if (random_() % 4 == 0) r.stop.ignore_eos = true;
    if (random_() % 4 == 0) r.cache_salt = "tenant";
    if (random_() % 4 == 0) r.n = 3;
    r.priority = static_cast<core::Priority>(random_() % 3);
    return r;
  }

  std::mt19937 random_{99};
};

TEST_P(EngineExactness, EveryAnswerIsTheOneGivenAlone) {
  const Situation setup = GetParam();
  EngineConfig config = EngineTest::config();
  config.max_step_tokens = setup.max_step_tokens;
  config.max_sequences = setup.max_sequences;
  config.max_waiting = 1000;
  config.prefix_cache = setup.prefix_cache;
  auto engine = make(config, setup.blocks);
  std::vector<core::Request> requests;
  for (int i = 0; i < 120; ++i) requests.push_back(random_request());
  std::vector<std::thread> clients;
  for (std::size_t client = 0; client < 3; ++client) {
    clients.emplace_back([&, client] {
      for (std::size_t i = client; i < requests.size(); i += 3) {
        const auto id = engine->submit(requests[i], answers_.sink(static_cast<int>(i)));
        if (i % 5 == 0) {  // a client that stops reading for a while
          engine->pause(id, true);
          std::this_thread::sleep_for(std::chrono::microseconds(200));
          engine->pause(id, false);
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Result result = answers_.wait(static_cast<int>(i));
    ASSERT_EQ(result.choices.size(), static_cast<std::size_t>(requests[i].n));
    for (const auto& [index, choice] : result.choices) {
      ASSERT_EQ(choice.tokens, model_answer(requests[i], index, {kEnd}))
          << "request " << i << " choice " << index;
    }
  }
  EXPECT_EQ(observer_->wrong_reads, 0);
  EXPECT_LE(observer_->max_rows, setup.max_step_tokens);
  if (setup.blocks <= 16) {
    EXPECT_GT(engine->stats().preempted, 0U);
  }
  expect_all_blocks_back(*engine);
}

INSTANTIATE_TEST_SUITE_P(Setups, EngineExactness,
                         testing::Values(Situation{"OneAtATime", 512, 1, 512, false},
                                         Situation{"OneAtATimeWarm", 512, 1, 512, true},
                                         Situation{"SmallSteps", 8, 64, 512, true},
                                         Situation{"LargeSteps", 512, 256, 2048, true},
                                         Situation{"NoCache", 32, 16, 512, false},
                                         Situation{"FewBlocks", 32, 16, 12, true},
                                         Situation{"FewBlocksNoCache", 16, 16, 12, false}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(EngineTest, ColdAndWarmAreEqualAndCachedTokensWereReallySkipped) {
  auto engine = make(config());
  for (const int length : {5, 16, 17, 32, 33, 100}) {
    core::Request r = request(prompt_of(length, length), 8);
    r.stop.ignore_eos = true;
    const Result cold = run(*engine, r);
    const int rows_before = observer_->rows;
    const Result warm = run(*engine, r);
    const int rows = observer_->rows - rows_before;
    EXPECT_EQ(warm.choices.at(0).tokens, cold.choices.at(0).tokens);
    EXPECT_EQ(cold.last.usage.cached_tokens, 0);
    EXPECT_EQ(warm.last.usage.cached_tokens, (length - 1) / 16 * 16);
    EXPECT_EQ(rows, length - warm.last.usage.cached_tokens + 8 - 1);
    EXPECT_EQ(warm.last.usage.prompt_tokens, length);
    EXPECT_EQ(warm.last.usage.completion_tokens, 8);
  }
}

TEST_F(EngineTest, TheSecondTurnOfAChatReusesTheFirstAnswer) {
  auto engine = make(config());
  core::Request first = request(prompt_of(30), 40);
  first.stop.ignore_eos = true;
  const std::vector<core::TokenId> answer = run(*engine, first).choices.at(0).tokens;
  core::Request second = first;
  second.prompt.insert(second.prompt.end(), answer.begin(), answer.end());
  second.prompt.push_back(5);
  const Result result = run(*engine, second);
  EXPECT_EQ(result.last.usage.cached_tokens, 64);  // 69 positions were computed
  EXPECT_EQ(result.choices.at(0).tokens, model_answer(second, 0, {kEnd}));
}

TEST_F(EngineTest, ChoicesDifferAndCountThePromptOnce) {
  auto engine = make(config());
  core::Request r = request(prompt_of(40), 6);
  r.sampling.temperature = 1;
  r.sampling.seed = 11;
  r.stop.ignore_eos = true;
  r.n = 4;
  const Result result = run(*engine, r);
  ASSERT_EQ(result.choices.size(), 4U);
  EXPECT_NE(result.choices.at(0).tokens, result.choices.at(1).tokens);
  EXPECT_EQ(result.last.usage.prompt_tokens, 40);
  EXPECT_EQ(result.last.usage.completion_tokens, 24);
  EXPECT_EQ(result.last.usage.cached_tokens, 0);
  EXPECT_EQ(observer_->rows, 40 + 3 * 8 + 4 * 5);  // each other choice computes its tail of 8
}

TEST_F(EngineTest, ASeedRepeatsAndAnotherDiffers) {
  auto engine = make(config());
  core::Request r = request(prompt_of(10), 20);
  r.sampling.temperature = 1;
  r.stop.ignore_eos = true;
  r.sampling.seed = 1;
  const auto one = run(*engine, r).choices.at(0).tokens;
  EXPECT_EQ(run(*engine, r).choices.at(0).tokens, one);
  r.sampling.seed = 2;
  EXPECT_NE(run(*engine, r).choices.at(0).tokens, one);
}

TEST_F(EngineTest, AStoppedChoiceLeavesTheOthersRunning) {
  auto engine = make(config());
  core::Request r = request(prompt_of(20), 60);
  r.sampling.temperature = 1.5F;
  r.n = 6;
  const Result result = run(*engine, r);
  int stops = 0;
  for (const auto& [index, choice] : result.choices) {
    const auto expected = model_answer(r, index, {kEnd});
    EXPECT_EQ(choice.tokens, expected);
    EXPECT_EQ(choice.finish, expected.back() == kEnd ? FinishReason::kStop : FinishReason::kLength);
    stops += choice.finish == FinishReason::kStop;
  }
  EXPECT_GT(stops, 0);
  EXPECT_LT(stops, 6);
}

}  // namespace
}  // namespace bodega::engine
