#include "schedule/fair_order.h"

#include <gtest/gtest.h>

#include "harness.h"

namespace bodega::schedule {
namespace {

using core::Priority;

TEST(FairOrder, OneKeyIsServedInOrderOfArrival) {
  FairOrder order;
  std::uint64_t last = order.rank("", Priority::kNormal, 10);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t rank = order.rank("", Priority::kNormal, i * 500);
    EXPECT_GT(rank, last);
    last = rank;
    if (i % 3 == 0) order.started(rank, Priority::kNormal);
  }
}

TEST(FairOrder, AKeyThatFloodsWaitsBehindItself) {
  FairOrder order;
  std::vector<std::uint64_t> flood;
  for (int i = 0; i < 100; ++i) flood.push_back(order.rank("a", Priority::kNormal, 100));
  for (int i = 0; i < 5; ++i) order.started(flood[static_cast<std::size_t>(i)], Priority::kNormal);
  const std::uint64_t other = order.rank("b", Priority::kNormal, 100);
  EXPECT_LE(other, flood[5]);
}

TEST(FairOrder, LongPromptsTakeMorePlaces) {
  FairOrder order;
  order.rank("a", Priority::kNormal, 10 * FairOrder::kTokensAPlace);
  const std::uint64_t second_long = order.rank("a", Priority::kNormal, 100);
  for (int i = 0; i < 8; ++i) EXPECT_LT(order.rank("b", Priority::kNormal, 100), second_long);
}

TEST(FairOrder, AKeyThatWasAwayHasNoCredit) {
  FairOrder order;
  order.rank("b", Priority::kNormal, 100);
  std::uint64_t last = 0;
  for (int i = 0; i < 50; ++i) {
    last = order.rank("a", Priority::kNormal, 100);
    order.started(last, Priority::kNormal);
  }
  EXPECT_GE(order.rank("b", Priority::kNormal, 100), last);
}

TEST(FairOrder, ManyKeysAreForgotten) {
  FairOrder order;
  for (int i = 0; i < 100'000; ++i) {
    order.started(order.rank(std::to_string(i), Priority::kBatch, 1), Priority::kBatch);
  }
  EXPECT_LE(order.keys(), 5000U);
}

// Sixteen requests of one key are there when another key's arrive: they take turns from then on.
TEST(Scheduler, KeysTakeTurns) {
  Harness h({.max_step_tokens = 32, .max_sequences = 1, .max_prompt_rows = 8}, 64);
  std::map<SequenceId, char> owner;
  for (TokenId i = 0; i < 16; ++i) {
    owner[h.add(Harness::counted(8, 100 * i), {.user_key = "a"})] = 'a';
  }
  for (TokenId i = 0; i < 4; ++i) {
    owner[h.add(Harness::counted(8, 5000 + 100 * i), {.user_key = "b"})] = 'b';
  }
  std::string served;
  for (int i = 0; i < 20; ++i) {
    const StepPlan plan = h.step();
    served += owner.at(plan.slices.at(0).id);
    h.scheduler.remove(plan.slices[0].id);
  }
  EXPECT_EQ(std::count(served.begin(), served.begin() + 8, 'b'), 4) << served;
}

}  // namespace
}  // namespace bodega::schedule
