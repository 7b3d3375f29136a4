#include "cache/ladder.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "../support/effort.h"
#include "cache/kv_cache.h"

namespace bodega::cache {
namespace {

constexpr int kNoLimit = std::numeric_limits<int>::max();

std::vector<TokenId> counted(int count, TokenId first) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

KvCache::Config config(int blocks, std::int64_t disk_bytes = 0,
                       EvictionPolicy policy = EvictionPolicy::kWorth) {
  KvCache::Config config;
  config.blocks = blocks;
  config.ladder = {policy, disk_bytes};
  config.blocks_per_file = 4;
  return config;
}

// A request for these tokens from start to end; returns tokens found in the cache.
int visit(KvCache& cache, const std::vector<TokenId>& tokens) {
  BlockTable table;
  const int reused = cache.reuse(table, tokens, kNoLimit);
  cache.count_reuse(table);
  EXPECT_TRUE(cache.grow(table, static_cast<int>(tokens.size())));
  cache.publish(table, tokens, static_cast<int>(tokens.size()));
  cache.drop(table);
  return reused;
}

TEST(WorthOrder, AgreesWithASortedList) {
  std::mt19937 random(3);
  WorthOrder order(50);
  std::vector<std::int64_t> worths(50);
  for (int step = 0; step < effort(50'000); ++step) {
    const auto block = static_cast<BlockId>(random() % 50);
    if (order.contains(block)) {
      order.erase(block);
    } else {
      worths[static_cast<std::size_t>(block)] = static_cast<std::int64_t>(random() % 20);
      order.insert(block, worths[static_cast<std::size_t>(block)]);
    }
    if (order.empty()) continue;
    std::int64_t least = 1000;
    for (BlockId b = 0; b < 50; ++b) {
      if (order.contains(b)) least = std::min(least, worths[static_cast<std::size_t>(b)]);
    }
    ASSERT_EQ(order.least(), least);
    ASSERT_EQ(worths[static_cast<std::size_t>(order.first())], least);
    if (step % 64 == 0) {
      ASSERT_NO_THROW(order.check());
    }
  }
}

// A system prompt that is asked for now and then survives a scan of documents that are read once
// each; by time of use alone it would be gone every time.
TEST(Ladder, AScanDoesNotFlushWhatIsUsedAgain) {
  const auto system = counted(160, 0);
  std::map<EvictionPolicy, int> found;
  for (const EvictionPolicy policy : {EvictionPolicy::kWorth, EvictionPolicy::kLeastRecent}) {
    KvCache cache(config(64, 0, policy));
    for (int i = 0; i < 4; ++i) visit(cache, system);
    for (TokenId document = 1; document < 200; ++document) {
      visit(cache, counted(200, 10'000 * document));
      if (document % 6 == 0) found[policy] += visit(cache, system);
    }
  }
  EXPECT_GT(found[EvictionPolicy::kWorth], 3 * (found[EvictionPolicy::kLeastRecent] + 100));
}

TEST(Ladder, WhatNobodyAsksForAnyMoreGoesInTheEnd) {
  KvCache cache(config(64));
  const auto popular = counted(160, 0);
  for (int i = 0; i < 30; ++i) visit(cache, popular);
  for (TokenId document = 1; document < 1000; ++document) {
    visit(cache, counted(200, 10'000 * document));
  }
  EXPECT_EQ(visit(cache, popular), 0);
}

TEST(Ladder, BlocksAreWrittenBeforeTheyGoAndReadBack) {
  KvCache cache(config(32, 1'000'000));
  const auto tokens = counted(100, 0);
  visit(cache, tokens);
  visit(cache, counted(400, 5000));  // little is free now: writing begins
  int written = 0;
  while (auto job = cache.plan_spill(false)) {
    EXPECT_LE(job->blocks.size(), 4U);
    written += static_cast<int>(job->blocks.size());
    for (std::size_t i = 1; i < job->stored.size(); ++i) {
      EXPECT_EQ(job->stored[i].parent, job->stored[i - 1].key);  // in order of the prefix
    }
    cache.spilled(*job, true, 100);
  }
  EXPECT_GT(written, 0);
  while (auto job = cache.plan_spill(true)) cache.spilled(*job, true, 100);
  EXPECT_EQ(cache.ladder().clean(), cache.pool().idle());
  visit(cache, counted(500, 20'000));  // pushes everything out
  BlockTable table;
  EXPECT_EQ(cache.reuse(table, tokens, kNoLimit), 0);
  ASSERT_TRUE(cache.grow(table, 100));
  const auto job = cache.plan_restore(table, tokens, kNoLimit);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->parts.size(), 6U);  // never the block with the final token
  cache.publish(table, tokens, 96);
  cache.restored(*job, 6);
  const std::vector<const BlockTable*> tables{&table};
  cache.check(tables);
  EXPECT_EQ(cache.counters().restored_blocks, 6U);
}

TEST(Ladder, ABlockIsNotWrittenTwice) {
  KvCache cache(config(32, 1'000'000));
  for (int i = 0; i < 5; ++i) {
    visit(cache, counted(320, 0));
    while (auto job = cache.plan_spill(true)) cache.spilled(*job, true, 100);
  }
  EXPECT_EQ(cache.counters().spilled_blocks, 20U);
}

TEST(Ladder, AFileThatFailsIsForgotten) {
  KvCache cache(config(32, 1'000'000));
  const auto tokens = counted(100, 0);
  visit(cache, tokens);
  while (auto job = cache.plan_spill(true)) cache.spilled(*job, true, 100);
  visit(cache, counted(500, 20'000));
  for (const bool again : {false, true}) {
    BlockTable table;
    cache.reuse(table, tokens, kNoLimit);
    ASSERT_TRUE(cache.grow(table, 100));
    const auto job = cache.plan_restore(table, tokens, kNoLimit);
    EXPECT_EQ(job.has_value(), !again);
    if (job) cache.restored(*job, 0);
    cache.drop(table);
  }
  EXPECT_EQ(cache.counters().bad_blocks, 1U);
}

// Reading is slower than computing: nothing is written, nothing read.
TEST(Ladder, ASlowDiskIsNotUsed) {
  cost::MachineProfile machine = *cost::find_machine("two-cores");
  machine.ssd_read = 1e6;
  const cost::CostModel prices(machine, {.weight_bytes = 60'000'000,
                                         .flops_per_row = 200'000'000,
                                         .head_bytes = 18'000'000,
                                         .flops_per_sampled_row = 56'000'000,
                                         .kv_bytes_per_token = 23'040,
                                         .flops_per_kv_token = 69'120,
                                         .block_bytes = 368'640});
  KvCache cache(config(32, 1'000'000), &PrefixIndex::chain, &prices);
  visit(cache, counted(400, 0));
  EXPECT_FALSE(cache.plan_spill(true));
}

TEST(Ladder, ATransferKeepsItsBlocksWhoeverLeaves) {
  KvCache cache(config(16, 1'000'000));
  const auto tokens = counted(100, 0);
  visit(cache, tokens);
  auto spill = cache.plan_spill(true);
  ASSERT_TRUE(spill);
  BlockTable other;
  const auto more = counted(256, 9000);
  cache.reuse(other, more, kNoLimit);
  EXPECT_FALSE(cache.grow(other, 256));  // what is being written is not handed out
  cache.check({});
  cache.spilled(*spill, false, 0);
  EXPECT_TRUE(cache.grow(other, 256));
  cache.drop(other);
  cache.check({});
}

}  // namespace
}  // namespace bodega::cache
