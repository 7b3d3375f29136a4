#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <stdexcept>

#include "../support/effort.h"

namespace bodega::cache {
namespace {

// The pool as one would write it without caring for speed.
class ReferencePool {
 public:
  explicit ReferencePool(int blocks)
      : references_(static_cast<std::size_t>(blocks)), findable_(references_.size()) {}

  bool can_allocate() const { return available() > 0; }
  void allocated(const BlockPool::Allocation& taken) {
    ASSERT_EQ(references_[index(taken.block)], 0);
    ASSERT_EQ(taken.was_findable, static_cast<bool>(findable_[index(taken.block)]));
    if (taken.was_findable) {
      ASSERT_EQ(free(), 0) << "evicted although a free block was left";
      ASSERT_EQ(taken.block, cached_.front()) << "not the block unused for longest";
      cached_.pop_front();
      findable_[index(taken.block)] = false;
    }
    references_[index(taken.block)] = 1;
  }
  void retain(BlockId block) {
    if (references_[index(block)]++ == 0) std::erase(cached_, block);
  }
  void release(BlockId block) {
    if (--references_[index(block)] == 0 && findable_[index(block)]) cached_.push_back(block);
  }
  void set_findable(BlockId block) { findable_[index(block)] = true; }
  void forget(BlockId block) {
    findable_[index(block)] = false;
    std::erase(cached_, block);
  }

  int references(BlockId block) const { return references_[index(block)]; }
  bool findable(BlockId block) const { return findable_[index(block)]; }
  int cached() const { return static_cast<int>(cached_.size()); }
  int available() const {
    return static_cast<int>(std::count(references_.begin(), references_.end(), 0));
  }
  const std::deque<BlockId>& order() const { return cached_; }

 private:
  static std::size_t index(BlockId block) { return static_cast<std::size_t>(block); }
  int free() const { return available() - cached(); }

  std::vector<int> references_;
  std::vector<bool> findable_;
  std::deque<BlockId> cached_;
};

TEST(BlockPool, HandsOutEachBlockOnce) {
  BlockPool pool(3);
  std::vector<BlockId> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(pool.allocate()->block);
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, (std::vector<BlockId>{0, 1, 2}));
  EXPECT_FALSE(pool.allocate().has_value());
}

TEST(BlockPool, EvictsTheBlockUnusedForLongest) {
  BlockPool pool(2);
  const BlockId first = pool.allocate()->block;
  const BlockId second = pool.allocate()->block;
  for (BlockId block : {first, second}) {
    pool.set_findable(block, true);
    pool.release(block);
  }
  pool.retain(first);  // used again, so `second` is now the older one
  pool.release(first);
  const auto evicted = pool.allocate();
  EXPECT_EQ(evicted->block, second);
  EXPECT_TRUE(evicted->was_findable);
  EXPECT_FALSE(pool.findable(second));
}

TEST(BlockPool, AgreesWithTheReferenceOnRandomOperations) {
  std::mt19937 random(7);
  constexpr int kBlocks = 23;
  BlockPool pool(kBlocks);
  ReferencePool reference(kBlocks);
  for (int step = 0; step < effort(300'000); ++step) {
    const auto block = static_cast<BlockId>(random() % kBlocks);
    const bool held = pool.references(block) > 0;
    switch (random() % 5) {
      case 0:
        if (const auto taken = pool.allocate()) {
          reference.allocated(*taken);
        } else {
          ASSERT_FALSE(reference.can_allocate());
        }
        break;
      case 1:
        if (!held && !pool.findable(block)) break;
        pool.retain(block);
        reference.retain(block);
        break;
      case 2:
        if (!held) break;
        pool.release(block);
        reference.release(block);
        break;
      case 3:
        if (!held) break;
        pool.set_findable(block, true);
        reference.set_findable(block);
        break;
      default:
        if (random() % 8 != 0) break;
        pool.set_findable(block, false);
        reference.forget(block);
    }
    ASSERT_EQ(pool.references(block), reference.references(block));
    ASSERT_EQ(pool.findable(block), reference.findable(block));
    ASSERT_EQ(pool.available(), reference.available());
    ASSERT_EQ(pool.cached(), reference.cached());
    if (step % 64 != 0) continue;
    ASSERT_NO_THROW(pool.check());
    const auto order = pool.eviction_order();
    ASSERT_TRUE(
        std::equal(order.begin(), order.end(), reference.order().begin(), reference.order().end()));
  }
}

}  // namespace
}  // namespace bodega::cache
