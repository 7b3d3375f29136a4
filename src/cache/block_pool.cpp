#include "cache/block_pool.h"

#include <cassert>
#include <stdexcept>

namespace bodega::cache {

BlockPool::BlockPool(int blocks) : blocks_(static_cast<std::size_t>(blocks)) {
  free_.reserve(blocks_.size());
  for (BlockId block = blocks - 1; block >= 0; --block) free_.push_back(block);
}

std::optional<BlockPool::Allocation> BlockPool::allocate() {
  Allocation result;
  if (!free_.empty()) {
    result.block = free_.back();
    free_.pop_back();
  } else if (oldest_ != kNoBlock) {
    result = {oldest_, true};
    unlink_cached(result.block);
    at(result.block).findable = false;
  } else {
    return std::nullopt;
  }
  at(result.block).references = 1;
  return result;
}

void BlockPool::retain(BlockId block) {
  Block& entry = at(block);
  if (entry.references == 0) {
    assert(entry.findable);
    unlink_cached(block);
  }
  ++entry.references;
}

void BlockPool::release(BlockId block) {
  Block& entry = at(block);
  assert(entry.references > 0);
  if (--entry.references > 0) return;
  if (entry.findable) {
    append_cached(block);
  } else {
    free_.push_back(block);
  }
}

void BlockPool::set_findable(BlockId block, bool findable) {
  Block& entry = at(block);
  if (entry.findable == findable) return;
  entry.findable = findable;
  if (entry.references > 0) return;
  assert(!findable);  // a free block holds nothing worth finding
  unlink_cached(block);
  free_.push_back(block);
}

std::vector<BlockId> BlockPool::eviction_order() const {
  std::vector<BlockId> order;
  order.reserve(static_cast<std::size_t>(cached_count_));
  for (BlockId block = oldest_; block != kNoBlock; block = at(block).newer) order.push_back(block);
  return order;
}

void BlockPool::append_cached(BlockId block) {
  Block& entry = at(block);
  entry.older = newest_;
  entry.newer = kNoBlock;
  (newest_ == kNoBlock ? oldest_ : at(newest_).newer) = block;
  newest_ = block;
  ++cached_count_;
}

void BlockPool::unlink_cached(BlockId block) {
  Block& entry = at(block);
  (entry.older == kNoBlock ? oldest_ : at(entry.older).newer) = entry.newer;
  (entry.newer == kNoBlock ? newest_ : at(entry.newer).older) = entry.older;
  entry.older = entry.newer = kNoBlock;
  --cached_count_;
}

void BlockPool::check() const {
  enum class Place : char { kHeld, kFree, kCached };
  std::vector<Place> places(blocks_.size(), Place::kHeld);
  auto put = [&](BlockId block, Place place) {
    Place& slot = places[static_cast<std::size_t>(block)];
    if (slot != Place::kHeld) throw std::logic_error("block pool: a block is in two lists");
    slot = place;
  };
  for (BlockId block : free_) put(block, Place::kFree);
  const std::vector<BlockId> cached = eviction_order();
  for (BlockId block : cached) put(block, Place::kCached);
  if (static_cast<int>(cached.size()) != cached_count_) {
    throw std::logic_error("block pool: wrong count of cached blocks");
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    const bool held = block.references > 0;
    if (held != (places[i] == Place::kHeld)) {
      throw std::logic_error("block pool: a block is lost or held and listed at once");
    }
    if (!held && block.findable != (places[i] == Place::kCached)) {
      throw std::logic_error("block pool: an unreferenced block is in the wrong list");
    }
  }
}

}  // namespace bodega::cache
