#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "../support/effort.h"
#include "fake_disk.h"
#include "harness.h"

namespace bodega::schedule {
namespace {

// Clients that come, leave, pause and ask for several choices, on a pool that is always too small.
class RandomTraffic {
 public:
  RandomTraffic(std::uint32_t seed, bool prefix_cache)
      : random_(seed),
        h_({.max_step_tokens = 8 + static_cast<int>(seed % 25),
            .max_sequences = 5,
            .max_prompt_rows = 3},
           kBlocks, prefix_cache, seed % 2 == 0 ? &prices_ : nullptr,
           seed % 3 == 0 ? 0 : kDiskBytes),
        disk_(h_, seed) {}

  void step(int number) {
    if (live_.size() < 10 && random_() % 4 == 0) arrive(number);
    if (!live_.empty() && random_() % 16 == 0) disturb();
    StepPlan plan = h_.scheduler.schedule();
    ASSERT_LE(plan.batch.rows(), 8 + 24);
    disk_.start(plan.restores);
    // Text that ends an answer is found while the step runs.
    if (!live_.empty() && random_() % 64 == 0) finish(random_() % live_.size());
    h_.execute_alive(plan);
    if (testing::Test::HasFatalFailure()) return;
    for (const PlannedSlice& slice : plan.slices) settle(slice);
    disk_.advance();
    if (number % 512 == 0) squeeze();
    if (number % 2 == 0) {
      ASSERT_NO_THROW(h_.scheduler.check());
    }
    if (number % 64 == 0) no_one_waits_for_ever(number);
  }

  int finished() const { return finished_; }
  const FakeDisk& disk() const { return disk_; }
  std::uint64_t preempted() const { return h_.scheduler.preempted(); }
  int reused() const { return reused_; }

 private:
  static constexpr int kBlocks = 13;
  static constexpr std::int64_t kDiskBytes = 30 * FakeDisk::kBlockBytes;
  struct Client {
    SequenceId id;
    int tokens_left;
    int arrived;
    bool paused = false;
  };

  // The device runs what it was given even when a sequence has ended meanwhile.
  struct DeviceHarness : Harness {
    using Harness::Harness;
    void execute_alive(const StepPlan& plan) {
      StepPlan alive;
      for (std::size_t i = 0; i < plan.slices.size(); ++i) {
        if (scheduler.find(plan.slices[i].id) == nullptr) continue;
        core::SequenceSlice slice = plan.batch.sequences[i];
        const auto first = plan.batch.tokens.begin() + slice.row_begin;
        slice.row_begin = alive.batch.rows();
        alive.batch.tokens.insert(alive.batch.tokens.end(), first, first + slice.row_count);
        alive.batch.sequences.push_back(slice);
        alive.slices.push_back(plan.slices[i]);
      }
      alive.batch.blocks = plan.batch.blocks;
      execute(alive);
    }
  };

  void arrive(int number) {
    std::vector<TokenId> prompt = Harness::counted(1 + static_cast<int>(random_() % 90),
                                                   static_cast<TokenId>(1000 * (random_() % 3)));
    SequenceSpec spec;
    spec.priority = static_cast<core::Priority>(random_() % 3);
    spec.wants_prompt_rows = random_() % 8 == 0;
    spec.user_key = std::string(1, static_cast<char>('a' + random_() % 3));
    spec.cache_salt = random_() % 5 == 0 ? "salt" : "";
    const int choices = random_() % 4 == 0 ? 3 : 1;
    for (int i = 0; i < choices; ++i) {
      const int answer = 1 + static_cast<int>(random_() % 60);
      const SequenceId id = h_.add(prompt, spec);
      live_.push_back({id, answer, number});
      spec.wants_prompt_rows = false;
      if (i == 0) spec.leader = id;
    }
  }

  // The system wants memory back, and later has some again.
  void squeeze() {
    if (h_.cache.pool().retired() == 0) {
      for (int i = 0; i < 3; ++i) h_.cache.retire_block();
    } else {
      while (h_.cache.revive_block() != cache::kNoBlock) continue;
    }
  }

  void disturb() {
    const std::size_t pick = random_() % live_.size();
    if (random_() % 4 == 0) {
      finish(pick);
      return;
    }
    live_[pick].paused = !live_[pick].paused;
    h_.scheduler.pause(live_[pick].id, live_[pick].paused);
  }

  void finish(std::size_t index) {
    reused_ += h_.scheduler.find(live_[index].id)->reused;
    h_.scheduler.remove(live_[index].id);
    std::swap(live_[index], live_.back());
    live_.pop_back();
    ++finished_;
  }

  void settle(const PlannedSlice& slice) {
    h_.scheduler.commit(slice);
    if (!slice.last_token) return;
    for (std::size_t i = 0; i < live_.size(); ++i) {
      if (live_[i].id != slice.id) continue;
      ASSERT_EQ(h_.scheduler.find(slice.id)->pending(), 0);
      if (--live_[i].tokens_left == 0) {
        finish(i);
      } else {
        h_.scheduler.append(slice.id, static_cast<TokenId>(random_() % 2));
      }
      return;
    }
  }

  void no_one_waits_for_ever(int number) {
    for (Client& client : live_) {
      if (client.paused) client.arrived = number;
      ASSERT_LT(number - client.arrived, 20'000) << "sequence " << client.id << " starves";
    }
  }

  std::mt19937 random_;
  cost::CostModel prices_{*cost::find_machine("two-cores"), test_work()};
  DeviceHarness h_;
  FakeDisk disk_;
  std::vector<Client> live_;
  int finished_ = 0;
  int reused_ = 0;
};

TEST(SchedulerProperty, AMillionRandomSteps) {
  constexpr int kRuns = 20;
  constexpr int kSteps = effort(50'000);
  for (int run = 0; run < kRuns; ++run) {
    SCOPED_TRACE(run);
    RandomTraffic traffic(static_cast<std::uint32_t>(run), run % 4 != 3);
    for (int step = 0; step < kSteps; ++step) {
      traffic.step(step);
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(traffic.finished(), kSteps / 50);
    EXPECT_GT(traffic.preempted(), 5U);
    EXPECT_GT(traffic.reused(), 0);  // without a prefix cache, between choices
    if (run % 3 != 0 && run % 4 != 3) {
      EXPECT_GT(traffic.disk().written(), kSteps / 500);
      EXPECT_GT(traffic.disk().good(), kSteps / 500);
      EXPECT_GT(traffic.disk().bad(), 0);
    }
  }
}

}  // namespace
}  // namespace bodega::schedule
