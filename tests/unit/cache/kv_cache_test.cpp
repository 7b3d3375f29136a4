#include "cache/kv_cache.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>

#include "../support/effort.h"

namespace bodega::cache {
namespace {

using core::kBlockTokens;
constexpr int kNoLimit = std::numeric_limits<int>::max();

std::vector<TokenId> counted(int count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// A table with all its tokens computed and published.
BlockTable computed(KvCache& cache, const std::vector<TokenId>& tokens, std::string salt = {}) {
  BlockTable table(std::move(salt));
  cache.reuse(table, tokens, kNoLimit);
  EXPECT_TRUE(cache.grow(table, static_cast<int>(tokens.size())));
  cache.publish(table, tokens, static_cast<int>(tokens.size()));
  return table;
}

class KvCacheTest : public testing::Test {
 protected:
  KvCache cache_{{.blocks = 16, .prefix_cache = true, .model_salt = "m"}};
};

TEST_F(KvCacheTest, FindsThePrefixOfAFinishedSequence) {
  const auto tokens = counted(40);
  BlockTable first = computed(cache_, tokens);
  cache_.drop(first);
  BlockTable second;
  EXPECT_EQ(cache_.reuse(second, tokens, kNoLimit), 32);
  EXPECT_EQ(cache_.pool().references(second.blocks[0]), 1);
}

TEST_F(KvCacheTest, LeavesTheBlockWithTheFinalTokenToBeComputed) {
  for (const int length : {1, 15, 16, 17, 32, 33, 48}) {
    const auto tokens = counted(length, 1000 * length);
    BlockTable first = computed(cache_, tokens);
    BlockTable second;
    EXPECT_EQ(cache_.reuse(second, tokens, kNoLimit), (length - 1) / kBlockTokens * kBlockTokens)
        << length;
    cache_.drop(first);
    cache_.drop(second);
  }
}

TEST_F(KvCacheTest, OnlyComputedBlocksAreFound) {
  const auto tokens = counted(64);
  BlockTable first;
  cache_.reuse(first, tokens, kNoLimit);
  ASSERT_TRUE(cache_.grow(first, 64));
  cache_.publish(first, tokens, 31);  // the second block lacks one position
  BlockTable second;
  EXPECT_EQ(cache_.reuse(second, tokens, kNoLimit), 16);
}

TEST_F(KvCacheTest, SaltsAndModelsKeepApart) {
  const auto tokens = counted(33);
  BlockTable mine = computed(cache_, tokens, "me");
  BlockTable theirs("them");
  EXPECT_EQ(cache_.reuse(theirs, tokens, kNoLimit), 0);
  BlockTable nobodys;
  EXPECT_EQ(cache_.reuse(nobodys, tokens, kNoLimit), 0);
  BlockTable again("me");
  EXPECT_EQ(cache_.reuse(again, tokens, kNoLimit), 32);
}

TEST_F(KvCacheTest, TwinsShareOneCopyAfterTheSecondIsComputed) {
  const auto tokens = counted(32);
  BlockTable first;
  BlockTable second;
  for (BlockTable* table : {&first, &second}) {
    cache_.reuse(*table, tokens, kNoLimit);
    ASSERT_TRUE(cache_.grow(*table, 40));
  }
  cache_.publish(first, tokens, 32);
  cache_.publish(second, tokens, 32);
  EXPECT_EQ(first.blocks[0], second.blocks[0]);
  EXPECT_EQ(first.blocks[1], second.blocks[1]);
  EXPECT_NE(first.blocks[2], second.blocks[2]);
  const BlockTable* tables[] = {&first, &second};
  EXPECT_NO_THROW(cache_.check(tables));
}

TEST_F(KvCacheTest, GrowTakesAllOrNothing) {
  BlockTable table;
  const auto tokens = counted(300);
  cache_.reuse(table, tokens, kNoLimit);
  EXPECT_FALSE(cache_.grow(table, 16 * 16 + 1));
  EXPECT_TRUE(table.blocks.empty());
  EXPECT_TRUE(cache_.grow(table, 16 * 16));
  EXPECT_EQ(cache_.available(), 0);
}

TEST_F(KvCacheTest, ALongTailGoesBeforeItsPrefix) {
  const auto tokens = counted(64);
  BlockTable table = computed(cache_, tokens);
  const std::vector<BlockId> blocks = table.blocks;
  cache_.drop(table);
  std::vector<BlockId> order;
  for (BlockId next = cache_.ladder().victim(); order.size() < blocks.size();
       next = cache_.ladder().victim()) {
    order.push_back(next);
    while (cache_.pool().free() > 0) cache_.retire_block();
    cache_.retire_block();
  }
  EXPECT_EQ(order, std::vector<BlockId>(blocks.rbegin(), blocks.rend()));
}

TEST(KvCacheOff, NothingIsFound) {
  KvCache cache({.blocks = 8, .prefix_cache = false, .model_salt = {}});
  const auto tokens = counted(33);
  BlockTable table = computed(cache, tokens);
  cache.drop(table);
  BlockTable second;
  EXPECT_EQ(cache.reuse(second, tokens, kNoLimit), 0);
  EXPECT_EQ(cache.pool().idle(), 0);
}

Hash128 two_bits(const Hash128& parent, PrefixIndex::BlockTokens tokens) {
  return {0, (PrefixIndex::chain(parent, tokens).low) & 3U};
}

// Random sequences over few distinct blocks, so that prefixes are shared, evicted and collide.
// What a block holds is modelled beside it: the salt and the whole prefix up to its end.
class KvCacheProperty : public testing::TestWithParam<PrefixIndex::ChainHash> {
 protected:
  using Content = std::pair<std::string, std::vector<TokenId>>;
  struct Live {
    BlockTable table;
    std::vector<TokenId> tokens;
    int computed = 0;
  };

  std::vector<TokenId> random_tokens() {
    std::vector<TokenId> tokens;
    const int blocks = 1 + static_cast<int>(random_() % 5);
    for (int i = 0; i < blocks; ++i) {
      const auto kind = static_cast<TokenId>(random_() % 2);
      tokens.insert(tokens.end(), kBlockTokens, kind);
    }
    tokens.resize(tokens.size() - random_() % kBlockTokens);
    return tokens;
  }

  // The longest prefix of `tokens` that the model says can be found.
  int findable_tokens(const std::string& salt, const std::vector<TokenId>& tokens) const {
    std::set<Content> known;
    for (const auto& [block, content] : contents_) {
      if (cache_.pool().findable(block)) known.insert(content);
    }
    int found = 0;
    while (found + kBlockTokens < static_cast<int>(tokens.size())) {
      const auto end = tokens.begin() + found + kBlockTokens;
      if (!known.contains({salt, {tokens.begin(), end}})) break;
      found += kBlockTokens;
    }
    return found;
  }

  void start(bool exact) {
    Live live;
    live.table = BlockTable(random_() % 4 == 0 ? "other" : "");
    live.tokens = random_tokens();
    const int expected = findable_tokens(live.table.salt, live.tokens);
    live.computed = cache_.reuse(live.table, live.tokens, kNoLimit);
    if (exact) {
      ASSERT_EQ(live.computed, expected);
    } else {
      ASSERT_LE(live.computed, expected);  // a lost collision is a miss, never a wrong block
    }
    for (int i = 0; i < live.computed / kBlockTokens; ++i) verify(live, i);
    if (cache_.grow(live.table, static_cast<int>(live.tokens.size()))) {
      live_.push_back(std::move(live));
    } else {
      cache_.drop(live.table);
    }
  }

  Content content(const Live& live, int block) const {
    return {live.table.salt,
            {live.tokens.begin(), live.tokens.begin() + (block + 1) * kBlockTokens}};
  }
  void verify(const Live& live, int block) {
    const BlockId id = live.table.blocks[static_cast<std::size_t>(block)];
    ASSERT_EQ(contents_.at(id), content(live, block));
  }

  void compute(Live& live) {
    const int end = static_cast<int>(live.tokens.size());
    const int next = std::min(end, live.computed + static_cast<int>(random_() % 20));
    for (int i = live.computed / kBlockTokens; (i + 1) * kBlockTokens <= next; ++i) {
      contents_[live.table.blocks[static_cast<std::size_t>(i)]] = content(live, i);
    }
    live.computed = next;
    cache_.publish(live.table, live.tokens, live.computed);
    for (int i = 0; i < live.computed / kBlockTokens; ++i) verify(live, i);
  }

  void finish(std::size_t index) {
    cache_.drop(live_[index].table);
    std::swap(live_[index], live_.back());
    live_.pop_back();
  }

  std::mt19937 random_{11};
  KvCache cache_{{.blocks = 19, .prefix_cache = true, .model_salt = {}}, GetParam()};
  std::vector<Live> live_;
  std::map<BlockId, Content> contents_;
};

TEST_P(KvCacheProperty, EveryHitHoldsExactlyTheTokensAskedFor) {
  const bool exact = GetParam() == &PrefixIndex::chain;
  int hits = 0;
  for (int step = 0; step < effort(60'000); ++step) {
    if (live_.size() < 6 && random_() % 3 == 0) {
      start(exact);
      if (!live_.empty()) hits += live_.back().computed > 0;
    }
    if (live_.empty()) continue;
    const std::size_t pick = random_() % live_.size();
    if (random_() % 6 == 0) {
      finish(pick);
    } else {
      compute(live_[pick]);
    }
    if (HasFatalFailure()) return;
    std::vector<const BlockTable*> tables;
    for (const Live& live : live_) tables.push_back(&live.table);
    ASSERT_NO_THROW(cache_.check(tables));
  }
  EXPECT_GT(hits, effort(exact ? 1000 : 100));
}

INSTANTIATE_TEST_SUITE_P(Hashes, KvCacheProperty, testing::Values(&PrefixIndex::chain, &two_bits),
                         [](const auto& info) { return info.index == 0 ? "Full" : "TwoBits"; });

}  // namespace
}  // namespace bodega::cache
