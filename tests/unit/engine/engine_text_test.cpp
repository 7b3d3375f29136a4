#include <algorithm>
#include <cmath>

#include "engine_harness.h"

namespace bodega::engine {
namespace {

using core::FinishReason;

class EngineTextTest : public EngineTest {
 protected:
  std::unique_ptr<Engine> make_words() {
    return make(config(), 64,
                std::make_shared<const WordCodec>(std::map<core::TokenId, std::string>{
                    {10, "go "}, {11, "XY"}, {12, "Z"}, {13, " on"}, {14, "!"}, {kEnd, "</s>"}}));
  }
};

TEST_F(EngineTextTest, AStopStringAcrossTokensIsCutAndNothingOfItSent) {
  auto engine = make_words();
  core::Request r = scripted({10, 11, 12, 13, 13, 13});
  r.stop.stop = {"XYZ"};
  const Result result = run(*engine, r);
  const ChoiceResult& choice = result.choices.at(0);
  EXPECT_EQ(choice.text, "go ");
  EXPECT_EQ(choice.finish, FinishReason::kStop);
  EXPECT_EQ(choice.stop_reason, "XYZ");
  EXPECT_EQ(choice.tokens, (std::vector<core::TokenId>{10, 11, 12}));
  EXPECT_EQ(result.last.usage.completion_tokens, 3);
  // The row after the stop was already running; it is waited for and counted nowhere.
  eventually([&] { return observer_->rows == 3 + 3; });
  expect_all_blocks_back(*engine);
}

TEST_F(EngineTextTest, WhatOnlyLookedLikeAStopIsSent) {
  auto engine = make_words();
  core::Request r = scripted({10, 11, 14, kEnd});
  r.stop.stop = {"XYZ"};
  EXPECT_EQ(run(*engine, r).choices.at(0).text, "go XY!");
  r = scripted({10, 11, kEnd});
  r.stop.stop = {"XYZ"};
  const Result result = run(*engine, r);
  EXPECT_EQ(result.choices.at(0).text, "go XY");
  EXPECT_EQ(result.choices.at(0).finish, FinishReason::kStop);
}

TEST_F(EngineTextTest, AStopStringWinsOverTheLength) {
  auto engine = make_words();
  core::Request r = scripted({10, 11, 12});
  r.stop.max_tokens = 3;
  r.stop.stop = {"XYZ"};
  EXPECT_EQ(run(*engine, r).choices.at(0).finish, FinishReason::kStop);
  r.stop.max_tokens = 2;
  const Result cut = run(*engine, r);
  EXPECT_EQ(cut.choices.at(0).finish, FinishReason::kLength);
  EXPECT_EQ(cut.choices.at(0).text, "go XY");
}

TEST_F(EngineTextTest, AStopStringCanBeIncluded) {
  auto engine = make_words();
  core::Request r = scripted({10, 11, 12, 13});
  r.stop.stop = {"XYZ"};
  r.stop.include_stop_str_in_output = true;
  EXPECT_EQ(run(*engine, r).choices.at(0).text, "go XYZ");
}

TEST_F(EngineTextTest, AStopStringOfOneChoiceLeavesTheOthersAlone) {
  auto engine = make(config());
  core::Request r = request(prompt_of(20), 40);
  r.sampling.temperature = 1;
  r.stop.ignore_eos = true;
  r.n = 2;
  const auto first = model_answer(r, 0, {kEnd});
  const auto second = model_answer(r, 1, {kEnd});
  const auto only_first = std::find_if(first.begin() + 2, first.end(), [&](core::TokenId id) {
    return std::find(second.begin(), second.end(), id) == second.end();
  });
  ASSERT_NE(only_first, first.end());
  r.stop.stop = {WordCodec().token_text(*only_first)};
  const Result result = run(*engine, r);
  EXPECT_EQ(result.choices.at(0).tokens, std::vector(first.begin(), only_first + 1));
  EXPECT_EQ(result.choices.at(0).finish, FinishReason::kStop);
  EXPECT_EQ(result.choices.at(1).tokens, second);
  // The row in vain costs itself and nothing of its neighbour's step.
  const int first_rows = 20 + static_cast<int>(result.choices.at(0).tokens.size()) - 1 + 1;
  eventually([&] { return observer_->rows == first_rows + 4 + 40 - 1; });
  EXPECT_TRUE(engine->stats().alive);
  expect_all_blocks_back(*engine);
}

TEST_F(EngineTextTest, EndTokensEndAndAreNeverShown) {
  auto engine = make_words();
  const Result by_end = run(*engine, scripted({10, kEnd, 13}));
  EXPECT_EQ(by_end.choices.at(0).text, "go ");
  EXPECT_EQ(by_end.choices.at(0).stop_reason, "</s>");
  EXPECT_EQ(by_end.last.usage.completion_tokens, 2);
  core::Request r = scripted({10, 12, 13});
  r.stop.stop_token_ids = {12};
  const Result by_id = run(*engine, r);
  EXPECT_EQ(by_id.choices.at(0).text, "go ");
  EXPECT_EQ(by_id.choices.at(0).finish, FinishReason::kStop);
}

TEST_F(EngineTextTest, IgnoreEosRunsToTheLength) {
  auto engine = make_words();
  core::Request r = scripted({10, kEnd, 13, 13});
  r.stop.ignore_eos = true;
  r.stop.max_tokens = 4;
  const Result result = run(*engine, r);
  EXPECT_EQ(result.choices.at(0).finish, FinishReason::kLength);
  EXPECT_EQ(result.last.usage.completion_tokens, 4);
}

TEST_F(EngineTextTest, MinTokensKeepsEndTokensFromBeingSampled) {
  auto engine = make_words();
  core::Request r = request({1, 2, 3}, 12);
  r.sampling.logit_bias[kEnd] = 100;
  EXPECT_EQ(run(*engine, r).last.usage.completion_tokens, 1);
  r.stop.min_tokens = 5;
  const Result result = run(*engine, r);
  EXPECT_EQ(result.last.usage.completion_tokens, 6);
  EXPECT_EQ(result.choices.at(0).tokens, model_answer(r, 0, {kEnd}));
}

TEST_F(EngineTextTest, LogprobsGoWithTheirTokens) {
  auto engine = make_words();
  core::Request r = request(prompt_of(20), 9);
  r.stop.ignore_eos = true;
  r.sampling.logprobs = true;
  r.sampling.top_logprobs = 5;
  const ChoiceResult choice = run(*engine, r).choices.at(0);
  ASSERT_EQ(choice.logprobs.size(), choice.tokens.size());
  for (std::size_t i = 0; i < choice.tokens.size(); ++i) {
    EXPECT_EQ(choice.logprobs[i].id, choice.tokens[i]);
    ASSERT_EQ(choice.logprobs[i].top.size(), 5U);
    EXPECT_EQ(choice.logprobs[i].top[0].first, choice.tokens[i]);  // greedy
    EXPECT_EQ(choice.logprobs[i].top[0].second, choice.logprobs[i].logprob);
  }
}

TEST_F(EngineTextTest, PromptLogprobsCoverThePromptWarmOrCold) {
  auto engine = make_words();
  core::Request r = request(prompt_of(50), 3);
  run(*engine, r);  // the prompt is cached now, but every row is wanted
  r.prompt_logprobs = true;
  r.sampling.top_logprobs = 2;
  const Result result = run(*engine, r);
  ASSERT_EQ(result.prompt_logprobs.size(), 49U);
  EXPECT_EQ(result.last.usage.cached_tokens, 0);
  std::uint64_t prefix = 0;
  std::vector<float> logits(kEchoVocab);
  for (int i = 0; i < 49; ++i) {
    const auto at = static_cast<std::size_t>(i);
    prefix = extend_prefix(prefix, r.prompt[at], i);
    echo_logits(prefix, logits.data());
    double sum = 0;
    for (const float l : logits) sum += std::exp(static_cast<double>(l));
    const core::TokenId next = r.prompt[at + 1];
    EXPECT_EQ(result.prompt_logprobs[at].id, next);
    EXPECT_NEAR(result.prompt_logprobs[at].logprob,
                static_cast<double>(logits[static_cast<std::size_t>(next)]) - std::log(sum), 1e-5);
    EXPECT_EQ(result.prompt_logprobs[at].top.size(), 2U);
  }
}

TEST_F(EngineTextTest, NoTokensButPromptLogprobs) {
  auto engine = make_words();
  core::Request r = request(prompt_of(20), 0);
  r.prompt_logprobs = true;
  const Result result = run(*engine, r);
  EXPECT_EQ(result.prompt_logprobs.size(), 19U);
  EXPECT_TRUE(result.choices.at(0).tokens.empty());
  EXPECT_EQ(result.choices.at(0).finish, FinishReason::kLength);
  EXPECT_EQ(result.last.usage.completion_tokens, 0);
}

TEST_F(EngineTextTest, OneStepOfSeveralChoicesIsOneCall) {
  auto engine = make_words();
  core::Request r = scripted({10, 13, kEnd});
  r.n = 2;
  const Result result = run(*engine, r);
  EXPECT_EQ(result.choices.at(0).text, "go  on");
  EXPECT_EQ(result.choices.at(1).text, "go  on");
  EXPECT_LE(result.calls, 4);  // the second choice starts one step after the first
}

TEST_F(EngineTextTest, FinishedRequestsAreReportedForTheLog) {
  struct Record {
    std::vector<std::vector<core::TokenId>> outputs;
    std::vector<FinishReason> reasons;
    int completion_tokens;
  };
  std::vector<Record> records;
  EngineConfig with_log = config();
  with_log.on_finished = [&](const FinishedRequest& f) {
    records.push_back({f.outputs, f.reasons, f.usage.completion_tokens});
    EXPECT_EQ(f.request.prompt, (std::vector<core::TokenId>{1, 2, 3}));
  };
  auto engine = make(with_log, 64);
  core::Request r = scripted({10, 11, kEnd});
  r.stop.stop = {"<11>"};
  run(*engine, r);
  engine.reset();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].outputs[0], (std::vector<core::TokenId>{10, 11}));
  EXPECT_EQ(records[0].reasons[0], FinishReason::kStop);
  EXPECT_EQ(records[0].completion_tokens, 2);
}

TEST_F(EngineTextTest, TimingsAddUp) {
  auto engine = make_words();
  const Result result = run(*engine, request(prompt_of(40), 10));
  const core::Timings& t = result.last.timings;
  EXPECT_GE(t.queue_s, 0);
  EXPECT_GT(t.prefill_s, 0);
  EXPECT_GT(t.decode_s, 0);
  EXPECT_LT(t.queue_s + t.prefill_s + t.decode_s, 30);
}

}  // namespace
}  // namespace bodega::engine
