#include <atomic>
#include <thread>

#include "base/errors.h"
#include "engine_harness.h"

namespace bodega::engine {
namespace {

using core::FinishReason;
using namespace std::chrono_literals;

class EngineTrafficTest : public EngineTest {
 protected:
  EngineConfig gated() {
    EngineConfig result = config();
    result.before_step = [this](std::uint64_t) { gate_.pass(); };
    return result;
  }
  static core::Request endless(int salt = 0) {
    core::Request r = request(prompt_of(20, salt), 2000);
    r.stop.ignore_eos = true;
    return r;
  }
  static ErrorKind error_of(Engine& engine, core::Request r) {
    try {
      engine.submit(std::move(r), [](core::RequestOutput) {});
    } catch (const Error& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
      return error.kind();
    }
    ADD_FAILURE() << "accepted";
    return ErrorKind::kInternal;
  }
  Gate gate_{true};
};

TEST_F(EngineTrafficTest, ACancelledRequestIsGoneWithinOneStep) {
  auto engine = make(gated(), 2048);
  const auto id = engine->submit(endless(), answers_.sink(1));
  answers_.wait_for_tokens(1, 5);
  gate_.close();
  gate_.wait_until_held();
  engine->cancel(id);
  const std::uint64_t step = engine->stats().steps;
  gate_.open();
  eventually([&] { return engine->stats().running == 0; });
  EXPECT_LE(engine->stats().steps, step + 2);
  const int calls = answers_.now(1).calls;
  EXPECT_FALSE(answers_.now(1).finished);
  run(*engine, request({1, 2}, 3));
  EXPECT_EQ(answers_.now(1).calls, calls);
  expect_all_blocks_back(*engine);
}

TEST_F(EngineTrafficTest, CancelledWaitersAreNeverComputed) {
  EngineConfig one = config();
  one.max_sequences = 1;
  auto engine = make(one, 2048);
  engine->submit(endless(), answers_.sink(0));
  answers_.wait_for_tokens(0, 1);
  std::vector<core::RequestId> ids;
  for (int i = 1; i < 20; ++i) ids.push_back(engine->submit(endless(i), answers_.sink(i)));
  for (const core::RequestId id : ids) engine->cancel(id);
  eventually([&] { return engine->stats().waiting == 0; });
  EXPECT_EQ(engine->stats().prompt_tokens, 20U);
  for (int i = 1; i < 20; ++i) EXPECT_EQ(answers_.now(i).calls, 0);
}

TEST_F(EngineTrafficTest, AnUnknownIdIsIgnored) {
  auto engine = make(config());
  engine->cancel(12345);
  engine->pause(12345, true);
  EXPECT_TRUE(run(*engine, request({1}, 2)).finished);
}

TEST_F(EngineTrafficTest, APausedRequestStandsStillAndItsAnswerIsTheSame) {
  auto engine = make(config(), 512);
  core::Request r = endless();
  r.stop.max_tokens = 1500;
  const auto id = engine->submit(r, answers_.sink(1));
  answers_.wait_for_tokens(1, 3);
  engine->pause(id, true);
  run(*engine, request({4, 5}, 4));  // by now the pause has arrived
  const std::size_t before = answers_.now(1).choices[0].tokens.size();
  for (int i = 0; i < 20; ++i) run(*engine, request({4, 5, 6}, 10));
  const std::size_t after = answers_.now(1).choices[0].tokens.size();
  EXPECT_LE(after - before, 1U);
  EXPECT_LT(after, 1500U);
  engine->pause(id, false);
  EXPECT_EQ(answers_.wait(1).choices.at(0).tokens, model_answer(r, 0, {kEnd}));
}

TEST_F(EngineTrafficTest, TheQueueIsBounded) {
  EngineConfig small = config();
  small.max_sequences = 1;
  small.max_waiting = 2;
  auto engine = make(small, 2048);
  engine->submit(endless(), answers_.sink(0));
  answers_.wait_for_tokens(0, 1);
  engine->submit(endless(), answers_.sink(1));
  engine->submit(endless(), answers_.sink(2));
  EXPECT_EQ(error_of(*engine, endless()), ErrorKind::kQueueFull);
  EXPECT_EQ(engine->stats().waiting, 2);
  EXPECT_EQ(engine->stats().running, 1);
}

TEST_F(EngineTrafficTest, ABurstThatFitsTheBatchIsNotRefused) {
  EngineConfig small = config();
  small.max_waiting = 1;
  auto engine = make(small, 2048);
  for (int i = 0; i < 100; ++i) engine->submit(request({1, 2, 3}, 2), answers_.sink(i));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(answers_.wait(i).finished);
}

TEST_F(EngineTrafficTest, AWaiterTimesOut) {
  EngineConfig small = config();
  small.max_sequences = 1;
  small.queue_timeout_s = 1;
  small.before_step = [](std::uint64_t) { std::this_thread::sleep_for(2ms); };
  auto engine = make(small, 2048);
  engine->submit(endless(), answers_.sink(0));
  answers_.wait_for_tokens(0, 1);
  const auto id = engine->submit(endless(), answers_.sink(1));
  const Result result = answers_.wait(1);
  EXPECT_EQ(result.choices.at(0).finish, FinishReason::kError);
  EXPECT_EQ(result.last.error_kind, ErrorKind::kUnavailable);
  EXPECT_EQ(result.last.id, id);
}

TEST_F(EngineTrafficTest, AWaiterTimesOutWhileTheLoopSleeps) {
  EngineConfig small = config();
  small.queue_timeout_s = 1;
  Gate gate(false);
  small.before_step = [&](std::uint64_t) { gate.pass(); };
  auto engine = make(small, 2048);
  engine->submit(request({1}, 1), answers_.sink(0));
  gate.wait_until_held();
  engine->pause(engine->submit(endless(), answers_.sink(1)), true);  // never starts
  gate.open();
  answers_.wait(0);
  EXPECT_EQ(answers_.wait(1).last.error_kind, ErrorKind::kUnavailable);
}

TEST_F(EngineTrafficTest, BadRequestsAreRefusedByName) {
  EngineConfig c = config();
  c.context_length = 100;
  auto engine = make(c, 64);
  EXPECT_EQ(engine->context_length(), 100);
  auto with = [](auto change) {
    core::Request r = request({1, 2, 3}, 10);
    change(r);
    return r;
  };
  using R = core::Request;
  EXPECT_EQ(error_of(*engine, with([](R& r) { r.prompt = prompt_of(95); })),
            ErrorKind::kContextLengthExceeded);
  EXPECT_EQ(error_of(*engine, with([](R& r) { r.stop.max_tokens = 2'000'000'000; })),
            ErrorKind::kContextLengthExceeded);
  for (const R& r : {
           with([](R& x) { x.prompt.clear(); }),
           with([](R& x) { x.prompt = {kEchoVocab}; }),
           with([](R& x) { x.prompt = {-1}; }),
           with([](R& x) { x.n = 0; }),
           with([](R& x) { x.stop.stop = {""}; }),
           with([](R& x) { x.stop.min_tokens = 11; }),
           with([](R& x) { x.stop.stop_token_ids = {99}; }),
           with([](R& x) { x.sampling.logit_bias[kEchoVocab] = 1; }),
           with([](R& x) { x.sampling.temperature = -1; }),
           with([](R& x) { x.sampling.temperature = std::nanf(""); }),
           with([](R& x) { x.sampling.top_p = 0; }),
           with([](R& x) { x.sampling.repetition_penalty = 0; }),
       }) {
    EXPECT_EQ(error_of(*engine, r), ErrorKind::kInvalidRequest);
  }
  EXPECT_TRUE(run(*engine, request({1, 2}, 98)).finished);
}

TEST_F(EngineTrafficTest, ThePoolBoundsTheContext) {
  auto engine = make(config(), 4);
  EXPECT_EQ(engine->context_length(), 64);
  EXPECT_EQ(error_of(*engine, request(prompt_of(60), 5)), ErrorKind::kContextLengthExceeded);
  core::Request all = request(prompt_of(60), 4);
  all.stop.ignore_eos = true;
  EXPECT_EQ(run(*engine, all).last.usage.completion_tokens, 4);
}

TEST_F(EngineTrafficTest, DrainLetsAnswersEndAndThenCutsThem) {
  auto engine = make(config(), 2048);
  engine->submit(request({1, 2, 3}, 5), answers_.sink(1));
  engine->submit(endless(), answers_.sink(2));
  answers_.wait_for_tokens(2, 1);
  engine->drain(0.05);
  EXPECT_EQ(answers_.wait(1).choices.at(0).finish, FinishReason::kLength);
  const Result cut = answers_.wait(2);
  EXPECT_TRUE(cut.choices.at(0).finish == FinishReason::kCancelled ||
              cut.choices.at(0).tokens.size() == 2000U);
  EXPECT_EQ(error_of(*engine, request({1}, 1)), ErrorKind::kUnavailable);
}

TEST_F(EngineTrafficTest, TheDestructorTellsEveryClient) {
  auto engine = make(gated(), 2048);
  gate_.close();
  engine->submit(endless(), answers_.sink(1));
  engine->submit(endless(), answers_.sink(2));
  std::thread opener([&] {
    std::this_thread::sleep_for(20ms);
    gate_.open();
  });
  engine.reset();
  opener.join();
  for (const int key : {1, 2}) {
    EXPECT_TRUE(answers_.now(key).finished);
    EXPECT_EQ(answers_.now(key).choices.at(0).finish, FinishReason::kCancelled);
  }
}

TEST_F(EngineTrafficTest, AStuckLoopShowsItsAge) {
  auto engine = make(gated(), 64);
  EXPECT_EQ(engine->stats().last_step_age_s, 0);
  gate_.close();
  engine->submit(request({1, 2}, 2), answers_.sink(1));
  eventually([&] { return engine->stats().last_step_age_s > 0.05; });
  gate_.open();
  answers_.wait(1);
  eventually([&] { return engine->stats().last_step_age_s == 0; });
}

TEST_F(EngineTrafficTest, AStreamAndALongPromptBothMoveOn) {
  EngineConfig c = config();
  c.max_step_tokens = 16;
  auto engine = make(c, 2048);
  engine->submit(endless(), answers_.sink(1));
  answers_.wait_for_tokens(1, 1);
  const std::size_t before = answers_.now(1).choices[0].tokens.size();
  const std::uint64_t steps = engine->stats().steps;
  run(*engine, request(prompt_of(600), 1));
  const std::uint64_t taken = engine->stats().steps - steps;
  const std::size_t streamed = answers_.now(1).choices[0].tokens.size() - before;
  EXPECT_LE(taken, 600U / 15 + 10);  // the prompt had 15 of 16 rows
  EXPECT_GE(streamed + 3, taken);    // and the stream one in every step
}

}  // namespace
}  // namespace bodega::engine
