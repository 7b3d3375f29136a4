#include <gtest/gtest.h>

#include "harness.h"

namespace bodega::schedule {
namespace {

class PricedSteps : public testing::Test {
 protected:
  // `streams` sequences that decode, with contexts of 100 tokens.
  void decode(Harness& h, int streams) {
    for (TokenId i = 0; i < streams; ++i) h.add(Harness::counted(100, 1000 * (i + 1)));
    for (int step = 0; step < 200; ++step) {
      bool all = true;
      for (const PlannedSlice& slice : h.step().slices) {
        if (slice.last_token) h.scheduler.append(slice.id, 7);
      }
      for (SequenceId id = 1; id <= static_cast<SequenceId>(streams); ++id) {
        all = all && h.scheduler.find(id)->prompt_done;
      }
      if (all) return;
    }
    FAIL() << "the streams never started";
  }
  StepPlan step(Harness& h) {
    StepPlan plan = h.step();
    for (const PlannedSlice& slice : plan.slices) {
      if (slice.last_token) h.scheduler.append(slice.id, 9);
    }
    return plan;
  }
  // What the step's decode rows would take by themselves.
  double plain_seconds(const StepPlan& plan) const {
    cost::StepShape shape;
    for (const core::SequenceSlice& slice : plan.batch.sequences) {
      if (slice.row_count == 1) shape.add_rows(slice.position, 1);
    }
    shape.sampled_rows = shape.rows;
    return prices_.step_seconds(shape);
  }
  double seconds(const StepPlan& plan) const { return prices_.step_seconds(plan.shape); }

  static Limits limits(GapTarget gap = {}) {
    return {.max_step_tokens = 2048, .max_sequences = 64, .max_prompt_rows = 32, .gap = gap};
  }
  cost::CostModel prices_{*cost::find_machine("two-cores"), test_work()};
};

TEST_F(PricedSteps, RunningStreamsWaitNoLongerThanTheGapTarget) {
  for (const int streams : {1, 4, 16}) {
    Harness h(limits(), 2048, true, &prices_);
    decode(h, streams);
    step(h);
    const SequenceId prompt = h.add(Harness::counted(6000, 100'000));
    int steps = 0;
    while (!h.scheduler.find(prompt)->prompt_done) {
      const StepPlan plan = step(h);
      ASSERT_LT(++steps, 2000);
      const int chunk = h.rows_of(plan, prompt);
      ASSERT_GE(chunk, 1);
      if (chunk > GapTarget{}.least_rows) {
        EXPECT_LE(seconds(plan), 2.3 * plain_seconds(plan));
      }
      ASSERT_EQ(plan.slices.size(), static_cast<std::size_t>(streams + 1));
    }
    EXPECT_LT(steps, 6000 / GapTarget{}.least_rows + 1);
  }
}

TEST_F(PricedSteps, AnAbsoluteGapHoldsInPlaceOfTheFactor) {
  Harness h(limits({.seconds = 0.2}), 2048, true, &prices_);
  decode(h, 2);
  h.add(Harness::counted(6000, 100'000));
  const StepPlan plan = step(h);
  EXPECT_LE(seconds(plan), 0.21);
  EXPECT_GE(seconds(plan), 0.18);
}

TEST_F(PricedSteps, ATargetThatCannotBeMetStillMovesThePrompt) {
  Harness h(limits({.seconds = 1e-6}), 2048, true, &prices_);
  decode(h, 2);
  const SequenceId prompt = h.add(Harness::counted(400, 100'000));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(h.rows_of(step(h), prompt), GapTarget{}.least_rows);
}

TEST_F(PricedSteps, AloneAPromptTakesLongStepsButLetsArrivalsIn) {
  Harness h(limits(), 2048, true, &prices_);
  const SequenceId prompt = h.add(Harness::counted(6000, 100'000));
  for (int i = 0; i < 3; ++i) {
    const StepPlan plan = step(h);
    EXPECT_LE(seconds(plan), GapTarget{}.alone_s * 1.05);
    EXPECT_GT(h.rows_of(plan, prompt), 100);
  }
}

TEST_F(PricedSteps, TheCeilingHoldsWhateverThePrice) {
  Limits bounds = limits({.alone_s = 1e6});
  bounds.max_step_tokens = 300;
  Harness h(bounds, 2048, true, &prices_);
  h.add(Harness::counted(6000, 100'000));
  EXPECT_EQ(step(h).batch.rows(), 300);
}

TEST_F(PricedSteps, ABoundedNumberOfPromptsSharesAStep) {
  Limits bounds = limits();
  bounds.max_prefills = 3;
  Harness h(bounds, 2048, true, &prices_);
  for (TokenId i = 0; i < 10; ++i) h.add(Harness::counted(20, 1000 * i));
  EXPECT_EQ(step(h).slices.size(), 3U);
}

// Two came later: the one whose blocks are cheaper to have again goes.
TEST_F(PricedSteps, TheVictimIsTheCheapestOfThoseThatCameLater) {
  Harness h({.max_step_tokens = 2048, .max_sequences = 8, .max_prompt_rows = 8}, 52, false,
            &prices_);
  const SequenceId keeper = h.add(Harness::counted(127, 10'000));
  const SequenceId cheap = h.add(Harness::counted(120, 20'000));
  const SequenceId dear = h.add(Harness::counted(500, 30'000));
  for (int i = 0; i < 100 && h.scheduler.preempted() == 0; ++i) {
    h.step();
    if (h.scheduler.find(keeper)->pending() == 0) h.scheduler.append(keeper, 7);
  }
  ASSERT_EQ(h.scheduler.preempted(), 1U);
  EXPECT_FALSE(h.scheduler.find(cheap)->admitted);
  EXPECT_TRUE(h.scheduler.find(keeper)->admitted);
  EXPECT_TRUE(h.scheduler.find(dear)->admitted);
}

TEST_F(PricedSteps, ThePlanSaysWhatTheStepDoes) {
  Harness h(limits(), 2048, true, &prices_);
  decode(h, 3);
  const StepPlan plan = step(h);
  EXPECT_EQ(plan.shape.rows, 3);
  EXPECT_EQ(plan.shape.sampled_rows, 3);
  std::int64_t keys = 0;
  for (const core::SequenceSlice& slice : plan.batch.sequences) keys += slice.position + 1;
  EXPECT_EQ(plan.shape.kv_tokens, keys);
  EXPECT_EQ(plan.shape.kv_pairs, keys);
}

}  // namespace
}  // namespace bodega::schedule
