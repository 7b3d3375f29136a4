#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/clock.h"

namespace bodega {
namespace {

TEST(BoundedQueue, KeepsOrderAndRefusesBeyondItsCapacity) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_TRUE(queue.try_push(2));
  EXPECT_FALSE(queue.try_push(3));
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_TRUE(queue.try_push(4));
  EXPECT_EQ(queue.drain(), (std::vector<int>{2, 4}));
  EXPECT_FALSE(queue.try_pop().has_value());
}

TEST(BoundedQueue, ARefusedItemIsNotMovedFrom) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
  auto kept = std::make_unique<int>(2);
  EXPECT_FALSE(queue.try_push(std::move(kept)));
  ASSERT_NE(kept, nullptr);
  queue.close();
  EXPECT_FALSE(queue.push(std::move(kept)));
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(*kept, 2);
}

TEST(BoundedQueue, CloseLetsReadersDrainThenEnds) {
  BoundedQueue<int> queue(4);
  EXPECT_TRUE(queue.try_push(1));
  queue.close();
  EXPECT_FALSE(queue.try_push(2));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_FALSE(queue.pop().has_value());
}

TEST(BoundedQueue, CloseWakesWaitingReadersAndWriters) {
  BoundedQueue<int> empty(1);
  BoundedQueue<int> full(1);
  ASSERT_TRUE(full.try_push(1));
  std::thread reader([&] { EXPECT_FALSE(empty.pop().has_value()); });
  std::thread writer([&] { EXPECT_FALSE(full.push(2)); });
  empty.close();
  full.close();
  reader.join();
  writer.join();
}

TEST(BoundedQueue, PopForGivesUpAfterItsTime) {
  BoundedQueue<int> queue(1);
  const Stopwatch watch;
  EXPECT_FALSE(queue.pop_for(std::chrono::milliseconds(20)).has_value());
  EXPECT_GE(watch.seconds(), 0.019);
}

TEST(BoundedQueue, ManyWritersAndReadersLoseNothing) {
  constexpr int kWriters = 4;
  constexpr int kEach = 5000;
  BoundedQueue<int> queue(8);
  std::atomic<long> sum{0};
  std::atomic<int> count{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      while (auto item = queue.pop()) {
        sum += *item;
        ++count;
      }
    });
  }
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      for (int i = 1; i <= kEach; ++i) ASSERT_TRUE(queue.push(int{i}));
    });
  }
  for (auto& writer : writers) writer.join();
  queue.close();
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(count, kWriters * kEach);
  EXPECT_EQ(sum, long{kWriters} * kEach * (kEach + 1) / 2);
}

}  // namespace
}  // namespace bodega
