#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "../support/effort.h"

namespace bodega::cache {
namespace {

TEST(BlockPool, HandsOutEachBlockOnce) {
  BlockPool pool(3);
  std::vector<BlockId> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(pool.allocate());
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, (std::vector<BlockId>{0, 1, 2}));
  EXPECT_EQ(pool.allocate(), kNoBlock);
}

TEST(BlockPool, AFindableBlockIsIdleUntilItIsForgotten) {
  BlockPool pool(2);
  const BlockId block = pool.allocate();
  pool.set_findable(block, true);
  pool.release(block);
  EXPECT_EQ(pool.idle(), 1);
  EXPECT_EQ(pool.free(), 1);
  pool.retain(block);
  EXPECT_EQ(pool.idle(), 0);
  pool.release(block);
  pool.set_findable(block, false);
  EXPECT_EQ(pool.free(), 2);
}

TEST(BlockPool, RetiredBlocksAreNobodysUntilTheyComeBack) {
  BlockPool pool(3);
  const BlockId held = pool.allocate();
  EXPECT_NE(pool.retire(), kNoBlock);
  EXPECT_NE(pool.retire(), kNoBlock);
  EXPECT_EQ(pool.retire(), kNoBlock);
  EXPECT_EQ(pool.allocate(), kNoBlock);
  EXPECT_EQ(pool.available(), 0);
  pool.check();
  const BlockId back = pool.revive();
  EXPECT_EQ(pool.allocate(), back);
  pool.release(held);
  pool.check();
}

// The pool as one would write it without caring for speed.
TEST(BlockPool, AgreesWithTheReferenceOnRandomOperations) {
  enum class Place { kFree, kUsed, kRetired };
  std::mt19937 random(7);
  constexpr int kBlocks = 23;
  BlockPool pool(kBlocks);
  std::vector<int> references(kBlocks);
  std::vector<bool> findable(kBlocks);
  std::vector<Place> places(kBlocks, Place::kFree);
  const auto count = [&](Place place) {
    return static_cast<int>(std::count(places.begin(), places.end(), place));
  };
  const auto settle = [&](std::size_t i) {
    if (places[i] == Place::kUsed && references[i] == 0 && !findable[i]) places[i] = Place::kFree;
  };
  for (int step = 0; step < effort(300'000); ++step) {
    const auto block = static_cast<BlockId>(random() % kBlocks);
    const auto i = static_cast<std::size_t>(block);
    const bool held = references[i] > 0;
    switch (random() % 6) {
      case 0: {
        const BlockId taken = pool.allocate();
        ASSERT_EQ(taken == kNoBlock, count(Place::kFree) == 0);
        if (taken == kNoBlock) break;
        ASSERT_EQ(places[static_cast<std::size_t>(taken)], Place::kFree);
        places[static_cast<std::size_t>(taken)] = Place::kUsed;
        references[static_cast<std::size_t>(taken)] = 1;
        break;
      }
      case 1:
        if (!held && !findable[i]) break;
        pool.retain(block);
        ++references[i];
        break;
      case 2:
        if (!held) break;
        pool.release(block);
        --references[i];
        settle(i);
        break;
      case 3:
        if (!held) break;
        pool.set_findable(block, true);
        findable[i] = true;
        break;
      case 4:
        if (random() % 8 != 0) break;
        pool.set_findable(block, false);
        findable[i] = false;
        settle(i);
        break;
      default: {
        if (random() % 8 != 0) break;
        const bool back = random() % 2 == 0;
        const BlockId moved = back ? pool.revive() : pool.retire();
        const Place from = back ? Place::kRetired : Place::kFree;
        ASSERT_EQ(moved == kNoBlock, count(from) == 0);
        if (moved == kNoBlock) break;
        ASSERT_EQ(places[static_cast<std::size_t>(moved)], from);
        places[static_cast<std::size_t>(moved)] = back ? Place::kFree : Place::kRetired;
      }
    }
    ASSERT_EQ(pool.references(block), references[i]);
    ASSERT_EQ(pool.findable(block), findable[i]);
    ASSERT_EQ(pool.free(), count(Place::kFree));
    ASSERT_EQ(pool.retired(), count(Place::kRetired));
    if (step % 64 == 0) {
      ASSERT_NO_THROW(pool.check());
    }
  }
}

}  // namespace
}  // namespace bodega::cache
