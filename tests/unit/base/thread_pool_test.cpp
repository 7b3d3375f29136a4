#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace bodega {
namespace {

struct Counts {
  std::vector<std::atomic<int>> chunk;
  explicit Counts(std::size_t n) : chunk(n) {}
};

void count_chunk(const void* context, int chunk, int) {
  static_cast<Counts*>(const_cast<void*>(context))->chunk[chunk].fetch_add(1);
}

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    Counts counts(1000);
    const ThreadPool::Phase phase{1000, count_chunk, &counts};
    for (int round = 1; round <= 50; ++round) {
      pool.run({&phase, 1});
      for (auto& c : counts.chunk) ASSERT_EQ(round, c.load());
    }
  }
}

TEST(ThreadPool, APhaseSeesAllThatEarlierOnesWrote) {
  ThreadPool pool(4);
  struct Sums {
    std::vector<int> first = std::vector<int>(64);
    std::vector<int> second = std::vector<int>(64);
  } sums;
  auto fill = [](const void* c, int chunk, int) {
    static_cast<Sums*>(const_cast<void*>(c))->first[chunk] += chunk;
  };
  auto add = [](const void* c, int chunk, int) {
    auto& s = *static_cast<Sums*>(const_cast<void*>(c));
    s.second[chunk] = 0;
    for (int v : s.first) s.second[chunk] += v;
  };
  const ThreadPool::Phase phases[] = {{64, fill, &sums}, {64, add, &sums}};
  for (int round = 1; round <= 500; ++round) {
    pool.run(phases);
    for (int v : sums.second) ASSERT_EQ(round * 64 * 63 / 2, v);
  }
}

TEST(ThreadPool, MorePhasesThanItHoldsAtOnceAndEmptyOnes) {
  ThreadPool pool(3);
  Counts counts(3);
  std::vector<ThreadPool::Phase> phases;
  for (int i = 0; i < 10000; ++i) phases.push_back({i % 4, count_chunk, &counts});
  pool.run(phases);
  EXPECT_EQ(7500, counts.chunk[0].load());
  EXPECT_EQ(5000, counts.chunk[1].load());
  EXPECT_EQ(2500, counts.chunk[2].load());
}

TEST(ThreadPool, EndsWhileItsThreadsSleepOrSpin) {
  for (int i = 0; i < 30; ++i) {
    ThreadPool pool(3);
    Counts counts(1);
    const ThreadPool::Phase phase{1, count_chunk, &counts};
    pool.run({&phase, 1});
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace
}  // namespace bodega
