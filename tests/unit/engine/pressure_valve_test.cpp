#include "engine/pressure_valve.h"

#include <atomic>

#include "engine_harness.h"

namespace bodega::engine {
namespace {

class CountingRunner : public KvEchoRunner {
 public:
  explicit CountingRunner(int blocks) : KvEchoRunner(blocks, std::make_shared<EchoObserver>()) {}
  void release_memory(int) override { ++released; }
  int released = 0;
};

class PressureValveTest : public testing::Test {
 protected:
  static constexpr int kBlocks = 64;
  void visit(int tokens) {
    cache::BlockTable table;
    std::vector<core::TokenId> prompt(static_cast<std::size_t>(tokens), 7);
    cache_.reuse(table, prompt, 1000);
    ASSERT_TRUE(cache_.grow(table, tokens));
    cache_.publish(table, prompt, tokens);
    cache_.drop(table);
  }
  CountingRunner runner_{kBlocks};
  cache::KvCache cache_{cache::KvCache::Config{.blocks = kBlocks, .model_salt = {}}};
  MemoryPressure level_ = MemoryPressure::kNone;
  PressureValve valve_{cache_, runner_, [this] { return level_; }, 16};
};

TEST_F(PressureValveTest, MemoryGoesWhileThereIsPressureAndComesBackInCalm) {
  visit(800);
  double now = 100;
  valve_.poll(now);
  EXPECT_EQ(cache_.pool().retired(), 0);
  level_ = MemoryPressure::kSome;
  for (int i = 0; i < 100; ++i) valve_.poll(now += 1);
  EXPECT_EQ(cache_.pool().total() - cache_.pool().retired(), 16);  // never less
  EXPECT_EQ(runner_.released, 48);
  cache_.check({});
  level_ = MemoryPressure::kNone;
  valve_.poll(now += 1);
  EXPECT_EQ(cache_.pool().retired(), 48);  // not calm for long enough yet
  for (int i = 0; i < 100; ++i) valve_.poll(now += 1);
  EXPECT_EQ(cache_.pool().retired(), 0);
  visit(900);
}

TEST_F(PressureValveTest, CriticalPressureIsAnsweredFaster) {
  level_ = MemoryPressure::kCritical;
  valve_.poll(100);
  EXPECT_EQ(cache_.pool().retired(), kBlocks / 4);
  valve_.poll(100.5);  // a look a second
  EXPECT_EQ(cache_.pool().retired(), kBlocks / 4);
}

TEST_F(PressureValveTest, WhatARequestHoldsStays) {
  cache::BlockTable table;
  ASSERT_TRUE(cache_.grow(table, 50 * core::kBlockTokens));
  level_ = MemoryPressure::kCritical;
  for (double now = 100; now < 120; ++now) valve_.poll(now);
  EXPECT_EQ(cache_.pool().retired(), kBlocks - 50);
  cache_.drop(table);
}

TEST_F(EngineTest, AnswersStayRightUnderMemoryPressure) {
  std::atomic<int> looks{0};
  EngineConfig c = config();
  c.context_length = 400;
  c.memory_pressure = [&looks] {
    return ++looks % 2 == 0 ? MemoryPressure::kNone : MemoryPressure::kCritical;
  };
  auto engine = make(c, 60);
  for (int i = 0; i < 40; ++i) {
    const core::Request r = request(prompt_of(200, i % 5), 8);
    EXPECT_EQ(run(*engine, r).choices.at(0).tokens, model_answer(r, 0, {kEnd}));
  }
  EXPECT_GT(engine->stats().blocks_given_back, 0);
  EXPECT_EQ(observer_->wrong_reads, 0);
}

}  // namespace
}  // namespace bodega::engine
