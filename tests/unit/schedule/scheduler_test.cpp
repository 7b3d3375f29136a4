#include "schedule/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness.h"

namespace bodega::schedule {
namespace {

using testing::ElementsAre;

Limits small_steps() { return {.max_step_tokens = 32, .max_sequences = 8, .max_prompt_rows = 8}; }

TEST(Scheduler, DecodesComeBeforePrefillInOneStep) {
  Harness h(small_steps(), 64);
  const SequenceId first = h.add(Harness::counted(10));
  h.step();
  h.scheduler.append(first, 99);
  const SequenceId second = h.add(Harness::counted(100, 500));
  const StepPlan plan = h.step();
  ASSERT_EQ(plan.slices.size(), 2U);
  EXPECT_EQ(plan.slices[0].id, first);
  EXPECT_EQ(plan.slices[0].rows, 1);
  EXPECT_EQ(plan.slices[1].id, second);
  EXPECT_EQ(plan.slices[1].rows, 31);
  EXPECT_THAT(plan.batch.sampled_rows, ElementsAre(0));  // the prompt is not at its end
}

TEST(Scheduler, AShortPromptOvertakesALongOne) {
  Harness h(small_steps(), 64);
  const SequenceId long_one = h.add(Harness::counted(500));
  h.step();
  const SequenceId short_one = h.add(Harness::counted(12, 1000));
  const StepPlan plan = h.step();
  EXPECT_EQ(h.rows_of(plan, short_one), 12);
  EXPECT_EQ(h.rows_of(plan, long_one), 20);
  EXPECT_TRUE(h.scheduler.find(short_one)->prompt_done);
}

TEST(Scheduler, ShortPromptsDoNotStarveALongOne) {
  Harness h(small_steps(), 256);
  const SequenceId long_one = h.add(Harness::counted(320));
  int steps = 0;
  for (; !h.scheduler.find(long_one)->prompt_done; ++steps) {
    const SequenceId a = h.add(Harness::counted(16, 1000 + 100 * steps));
    const SequenceId b = h.add(Harness::counted(16, 1050 + 100 * steps));
    h.step();
    for (const SequenceId id : {a, b}) {
      if (h.scheduler.find(id)->prompt_done) h.scheduler.remove(id);
    }
  }
  EXPECT_LE(steps, 20);  // half of every step is its own
}

TEST(Scheduler, ManyDecodesLeaveRoomForPrefillAndTakeTurns) {
  Harness h({.max_step_tokens = 8, .max_sequences = 32, .max_prompt_rows = 8}, 256);
  std::vector<SequenceId> streams;
  for (int i = 0; i < 12; ++i) streams.push_back(h.add(Harness::counted(2, 10 * i)));
  std::map<SequenceId, int> rows;
  const SequenceId prompt = h.add(Harness::counted(64, 5000));
  for (int step = 0; step < 60; ++step) {
    const StepPlan plan = h.step();
    for (const PlannedSlice& slice : plan.slices) {
      rows[slice.id] += slice.rows;
      if (slice.last_token) h.scheduler.append(slice.id, step);
    }
  }
  EXPECT_TRUE(h.scheduler.find(prompt)->prompt_done);
  for (const SequenceId id : streams) EXPECT_GE(rows[id], 20) << id;
}

TEST(Scheduler, TheLatestArrivalGivesItsBlocksBackAndIsComputedAgain) {
  Harness h(small_steps(), 4, false);
  const SequenceId first = h.add(Harness::counted(30));
  const SequenceId second = h.add(Harness::counted(30, 100));
  h.step();
  h.step();
  ASSERT_TRUE(h.scheduler.find(second)->prompt_done);
  std::map<SequenceId, int> produced;
  for (int step = 0; step < 40; ++step) {
    if (h.scheduler.find(first) != nullptr && h.scheduler.find(first)->pending() == 0) {
      h.scheduler.append(first, 7);
    }
    if (h.scheduler.find(second)->pending() == 0) h.scheduler.append(second, 8);
    h.step();
    h.scheduler.check();
    if (step == 10) h.scheduler.remove(first);
  }
  EXPECT_GE(h.scheduler.preempted(), 1U);
  EXPECT_GE(h.scheduler.find(second)->tokens.size(), 60U);
}

TEST(Scheduler, ChoicesShareThePromptsWholeBlocks) {
  for (const bool prefix_cache : {true, false}) {
    Harness h(small_steps(), 64, prefix_cache);
    const SequenceId leader = h.add(Harness::counted(40));
    const SequenceId follower = h.add(Harness::counted(40), {.leader = leader});
    EXPECT_EQ(h.rows_of(h.step(), follower), 0);
    h.step();
    ASSERT_TRUE(h.scheduler.find(leader)->prompt_done);
    const StepPlan plan = h.step();
    EXPECT_EQ(h.rows_of(plan, follower), 8);  // the tail behind two shared blocks
    const auto& mine = h.scheduler.find(follower)->table.blocks;
    const auto& theirs = h.scheduler.find(leader)->table.blocks;
    EXPECT_EQ(mine[0], theirs[0]);
    EXPECT_EQ(mine[1], theirs[1]);
    EXPECT_NE(mine[2], theirs[2]);
    h.scheduler.check();
  }
}

TEST(Scheduler, PromptsThatArriveTogetherComputeTheirCommonPartOnce) {
  Harness h({.max_step_tokens = 128, .max_sequences = 8, .max_prompt_rows = 8}, 64);
  const std::vector<TokenId> system_prompt = Harness::counted(64);
  std::vector<SequenceId> ids;
  for (TokenId user = 0; user < 4; ++user) {
    std::vector<TokenId> prompt = system_prompt;
    prompt.insert(prompt.end(), 5, 1000 + user);
    ids.push_back(h.add(prompt));
  }
  EXPECT_EQ(h.step().batch.rows(), 69);
  EXPECT_EQ(h.step().batch.rows(), 3 * 5);
  for (const SequenceId id : ids) EXPECT_TRUE(h.scheduler.find(id)->prompt_done);
  h.scheduler.check();
}

TEST(Scheduler, NobodyWaitsForAPromptThatStandsStill) {
  Harness h(small_steps(), 64);
  const SequenceId first = h.add(Harness::counted(200));
  h.step();
  const SequenceId second = h.add(Harness::counted(200));
  h.step();
  EXPECT_EQ(h.scheduler.find(second)->computed, 0);
  h.scheduler.pause(first, true);
  h.step();
  EXPECT_GT(h.scheduler.find(second)->computed, 0);
}

TEST(Scheduler, FollowersOfACancelledLeaderStartOnTheirOwn) {
  Harness h(small_steps(), 64);
  const SequenceId leader = h.add(Harness::counted(200));
  const SequenceId follower = h.add(Harness::counted(200), {.leader = leader});
  h.step();
  h.scheduler.remove(leader);
  while (!h.scheduler.find(follower)->prompt_done) ASSERT_FALSE(h.step().empty());
  h.scheduler.check();
}

TEST(Scheduler, APausedSequenceLeavesTheBatchAndComesBack) {
  Harness h(small_steps(), 64);
  const SequenceId id = h.add(Harness::counted(20));
  h.step();
  h.scheduler.append(id, 1);
  h.scheduler.pause(id, true);
  EXPECT_TRUE(h.step().empty());
  EXPECT_EQ(h.scheduler.find(id)->computed, 20);  // its blocks are still its own
  h.scheduler.pause(id, false);
  EXPECT_EQ(h.rows_of(h.step(), id), 1);
}

TEST(Scheduler, APausedSequenceGivesWayWhenItsBlocksAreNeeded) {
  Harness h(small_steps(), 4);
  const SequenceId idle = h.add(Harness::counted(40));
  h.step();
  h.step();
  h.scheduler.append(idle, 1);
  h.scheduler.pause(idle, true);
  const SequenceId active = h.add(Harness::counted(60, 300));
  h.step();
  h.step();
  EXPECT_TRUE(h.scheduler.find(active)->prompt_done);
  EXPECT_EQ(h.scheduler.find(idle)->computed, 0);
  h.scheduler.remove(active);
  h.scheduler.pause(idle, false);
  h.step();
  h.step();
  EXPECT_EQ(h.scheduler.find(idle)->pending(), 0);
}

TEST(Scheduler, PromptLogprobsSampleEveryRowOnceAndSkipNone) {
  Harness h(small_steps(), 64);
  h.add(Harness::counted(40));
  h.step();
  h.step();
  const SequenceId id = h.add(Harness::counted(40), {.wants_prompt_rows = true});
  int sampled = 0;
  while (!h.scheduler.find(id)->prompt_done) {
    const StepPlan plan = h.step();
    for (const PlannedSlice& slice : plan.slices) {
      if (slice.id != id) continue;
      EXPECT_LE(slice.rows, 8);
      sampled += slice.sample_count;
    }
  }
  EXPECT_EQ(h.scheduler.find(id)->reused, 0);
  EXPECT_EQ(sampled, 40);  // 39 prompt rows predict the next prompt token, the last the answer
}

TEST(Scheduler, AHigherPriorityGoesFirstButNotForEver) {
  Harness h({.max_step_tokens = 32, .max_sequences = 1, .max_prompt_rows = 8}, 64);
  const SequenceId batch = h.add(Harness::counted(8), {.priority = core::Priority::kBatch});
  const SequenceId urgent =
      h.add(Harness::counted(8, 50), {.priority = core::Priority::kInteractive});
  EXPECT_EQ(h.step().slices.at(0).id, urgent);
  h.scheduler.remove(urgent);
  int overtaken = 1;
  for (; h.scheduler.find(batch)->computed == 0; ++overtaken) {
    ASSERT_LT(overtaken, 2000);
    h.add(Harness::counted(8, 100 * overtaken), {.priority = core::Priority::kInteractive});
    const StepPlan plan = h.step();
    h.scheduler.remove(plan.slices.at(0).id);
    if (plan.slices[0].id == batch) break;
  }
  EXPECT_LE(overtaken, 1026);
}

TEST(Scheduler, ALargePromptIsNotKeptOutBySmallOnes) {
  Harness h(small_steps(), 8);
  const SequenceId running = h.add(Harness::counted(60));
  h.step();
  h.step();
  const SequenceId large = h.add(Harness::counted(100, 1000));
  h.scheduler.append(running, 1);
  std::vector<SequenceId> small;
  for (int i = 0; i < 3; ++i) small.push_back(h.add(Harness::counted(10, 2000 + 20 * i)));
  h.step();
  for (const SequenceId id : small) EXPECT_FALSE(h.scheduler.find(id)->admitted);
  EXPECT_EQ(h.scheduler.spare_sequences(), 0);
  h.scheduler.remove(running);
  EXPECT_GT(h.rows_of(h.step(), large), 0);
}

}  // namespace
}  // namespace bodega::schedule
