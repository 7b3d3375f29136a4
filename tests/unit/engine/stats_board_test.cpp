#include "engine/stats_board.h"

#include <gtest/gtest.h>

namespace bodega::engine {
namespace {

TEST(StatsBoard, AWaitBeyondTheTimeOutIsRefusedAtOnce) {
  StatsBoard board;
  board.publish({}, /*spare_sequences=*/0, /*start_interval_s=*/10.0);
  EXPECT_EQ(board.request_came(100, 35.0), std::nullopt);  // would wait 10 s
  EXPECT_EQ(board.request_came(100, 35.0), std::nullopt);
  EXPECT_EQ(board.request_came(100, 35.0), std::nullopt);
  EXPECT_EQ(board.request_came(100, 35.0), ErrorKind::kUnavailable);  // 40 s
  EXPECT_EQ(board.retry_after_s(), 40);
  board.request_left(/*started=*/false);
  EXPECT_EQ(board.request_came(100, 35.0), std::nullopt);
}

TEST(StatsBoard, WhoCanStartAtOnceDoesNotWait) {
  StatsBoard board;
  board.publish({}, /*spare_sequences=*/3, /*start_interval_s=*/1000.0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(board.request_came(100, 1.0), std::nullopt) << i;
  // The loop has not seen them yet, but their places are taken.
  EXPECT_EQ(board.request_came(100, 1.0), ErrorKind::kUnavailable);
}

TEST(StatsBoard, TheQueueBoundComesFirst) {
  StatsBoard board;
  board.publish({}, 0, 1000.0);
  EXPECT_EQ(board.request_came(0, 1.0), ErrorKind::kQueueFull);
}

TEST(StatsBoard, IntervalsThatWereSeenCountMoreThanPredictedOnes) {
  StatsBoard board;
  board.publish({}, 0, 1000.0);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(board.request_came(100, 1e9), std::nullopt);
  for (int i = 0; i < 10; ++i) board.request_started(100.0 + 2.0 * i);
  EXPECT_NEAR(board.read().predicted_wait_s, 2.0, 0.01);
}

}  // namespace
}  // namespace bodega::engine
