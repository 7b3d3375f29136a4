#include <stdexcept>

#include "base/errors.h"
#include "engine_harness.h"

namespace bodega::engine {
namespace {

using core::FinishReason;

TEST_F(EngineTest, AFailedStepEndsItsRequestsAndNoOthers) {
  EngineConfig failing = config();
  failing.max_sequences = 1;  // so the second request is not part of the failing step
  failing.before_step = [](std::uint64_t step) {
    if (step == 3) throw std::runtime_error("injected");
  };
  auto engine = make(failing);
  core::Request r = request(prompt_of(10), 20);
  r.stop.ignore_eos = true;
  engine->submit(r, answers_.sink(1));
  engine->submit(r, answers_.sink(2));
  const Result failed = answers_.wait(1);
  EXPECT_EQ(failed.choices.at(0).finish, FinishReason::kError);
  EXPECT_THAT(failed.last.error, testing::HasSubstr("injected"));
  EXPECT_EQ(failed.choices.at(0).tokens.size(), 2U);  // what was made before the failure arrived
  EXPECT_EQ(answers_.wait(2).choices.at(0).tokens, model_answer(r, 0, {kEnd}));
  EXPECT_TRUE(engine->stats().alive);
  expect_all_blocks_back(*engine);
}

TEST_F(EngineTest, ADeviceThatFailsOnceIsUsedAgain) {
  auto engine = make(config());
  observer_->fail_logits_at = 2;
  core::Request r = request(prompt_of(40), 10);
  const Result failed = run(*engine, r);
  EXPECT_EQ(failed.choices.at(0).finish, FinishReason::kError);
  EXPECT_THAT(failed.last.error, testing::HasSubstr("device lost"));
  EXPECT_EQ(run(*engine, r).choices.at(0).tokens, model_answer(r, 0, {kEnd}));
  EXPECT_EQ(observer_->wrong_reads, 0);
}

TEST_F(EngineTest, BlocksOfAFailedStepAreNotFound) {
  auto engine = make(config());
  observer_->fail_logits_at = 0;
  core::Request r = request(prompt_of(32), 4);
  run(*engine, r);
  const Result again = run(*engine, r);
  EXPECT_EQ(again.last.usage.cached_tokens, 0);
  EXPECT_EQ(again.choices.at(0).tokens, model_answer(r, 0, {kEnd}));
}

TEST_F(EngineTest, ABrokenRowEndsOneRequestOfTheStep) {
  EngineConfig gated = config();
  Gate gate(false);
  gated.before_step = [&](std::uint64_t) { gate.pass(); };
  auto engine = make(gated);
  observer_->nan_rows_at = 3;
  core::Request r = request(prompt_of(5), 12);
  r.stop.ignore_eos = true;
  engine->submit(r, answers_.sink(0));  // holds the loop at the gate until all are there
  gate.wait_until_held();
  for (int i = 1; i < 3; ++i) engine->submit(r, answers_.sink(i));
  gate.open();
  int failed = 0;
  for (int i = 0; i < 3; ++i) {
    const ChoiceResult choice = answers_.wait(i).choices.at(0);
    if (choice.finish == FinishReason::kError) {
      ++failed;
    } else {
      EXPECT_EQ(choice.tokens, model_answer(r, 0, {kEnd}));
    }
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(EngineTest, ASinkThatThrowsLosesOnlyItsOwnRequest) {
  auto engine = make(config());
  core::Request r = request(prompt_of(5), 200);
  r.stop.ignore_eos = true;
  engine->submit(r, [](core::RequestOutput) { throw std::runtime_error("client"); });
  EXPECT_EQ(run(*engine, r).choices.at(0).tokens, model_answer(r, 0, {kEnd}));
  EXPECT_EQ(engine->stats().running, 0);
}

TEST_F(EngineTest, ARunnerThatCannotBeMadeIsTheConstructorsError) {
  auto codec = std::make_shared<const WordCodec>();
  EXPECT_THROW(Engine(config(), codec,
                      []() -> std::unique_ptr<Runner> {
                        throw Error(ErrorKind::kBadModelFile, "no such weights");
                      }),
               Error);
}

TEST_F(EngineTest, ThePenaltyOfOneRequestLeavesItsNeighbourAlone) {
  EngineConfig gated = config();
  Gate gate(false);
  gated.before_step = [&](std::uint64_t) { gate.pass(); };
  auto engine = make(gated);
  core::Request plain = request(prompt_of(20), 30);
  core::Request penalised = plain;
  penalised.sampling.frequency_penalty = 2;
  penalised.sampling.repetition_penalty = 1.2F;
  engine->submit(penalised, answers_.sink(1));
  gate.wait_until_held();
  engine->submit(plain, answers_.sink(2));
  gate.open();
  EXPECT_EQ(answers_.wait(2).choices.at(0).tokens, model_answer(plain, 0, {kEnd}));
  EXPECT_EQ(answers_.wait(1).choices.at(0).tokens, model_answer(penalised, 0, {kEnd}));
}

}  // namespace
}  // namespace bodega::engine
