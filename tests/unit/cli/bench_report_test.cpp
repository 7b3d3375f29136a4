#include "cli/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bodega::cli {
namespace {

// Sent at 0, first piece at `first`, then a piece every second.
RequestTrace trace(double first, int pieces, int tokens_a_piece = 1) {
  RequestTrace trace;
  for (int i = 0; i < pieces; ++i) trace.pieces.push_back(first + i);
  trace.prompt_tokens = 100;
  trace.completion_tokens = pieces * tokens_a_piece;
  return trace;
}

TEST(Summarise, OneStreamDecodesAtItsOwnPace) {
  const BenchRow row = summarise(1, {trace(2, 11)});
  EXPECT_DOUBLE_EQ(row.first_token_s, 2);
  EXPECT_DOUBLE_EQ(row.prefill_tokens_per_s, 50);
  EXPECT_DOUBLE_EQ(row.decode_tokens_per_s, 1);
  EXPECT_DOUBLE_EQ(row.total_tokens_per_s, 11.0 / 12.0);
}

TEST(Summarise, CountsOnlyWhileAllStreamsDecode) {
  // The second begins at 5 and the first ends at 11: between, both give a token a second.
  EXPECT_DOUBLE_EQ(summarise(2, {trace(1, 11), trace(5, 11)}).decode_tokens_per_s, 2);
}

TEST(Summarise, APieceMayHoldSeveralTokens) {
  EXPECT_DOUBLE_EQ(summarise(1, {trace(1, 11, 3)}).decode_tokens_per_s, 3);
}

TEST(Summarise, CachedTokensAreNoPrefill) {
  RequestTrace cached = trace(2, 3);
  cached.cached_tokens = 80;
  EXPECT_DOUBLE_EQ(summarise(1, {cached}).prefill_tokens_per_s, 10);
}

TEST(Summarise, FailuresAreCountedAndLeftOut) {
  RequestTrace failed = trace(1, 5);
  failed.error = "status 500";
  const BenchRow row = summarise(3, {trace(2, 11), failed, RequestTrace{}});
  EXPECT_EQ(row.failed, 2);
  EXPECT_DOUBLE_EQ(row.first_token_s, 2);
  EXPECT_EQ(summarise(1, {failed}).failed, 1);
}

TEST(MedianRow, KeepsARowTogether) {
  const auto row = [](double decode, double first) {
    BenchRow row;
    row.decode_tokens_per_s = decode;
    row.first_token_s = first;
    return row;
  };
  EXPECT_EQ(median_row({row(3, 30), row(1, 10), row(2, 20)}).first_token_s, 20);
}

TEST(Table, HasALineARow) {
  EXPECT_THAT(table({BenchRow{}, BenchRow{}}), testing::HasSubstr("decode t/s"));
  EXPECT_EQ(to_json({BenchRow{}, BenchRow{}}).size(), 2U);
}

}  // namespace
}  // namespace bodega::cli
