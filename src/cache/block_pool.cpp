#include "cache/block_pool.h"

#include <cassert>
#include <stdexcept>

namespace bodega::cache {

BlockPool::BlockPool(int blocks) : blocks_(static_cast<std::size_t>(blocks)) {
  free_.reserve(blocks_.size());
  for (BlockId block = blocks - 1; block >= 0; --block) free_.push_back(block);
}

BlockId BlockPool::allocate() {
  if (free_.empty()) return kNoBlock;
  const BlockId block = free_.back();
  free_.pop_back();
  at(block).references = 1;
  return block;
}

void BlockPool::retain(BlockId block) {
  Block& entry = at(block);
  if (entry.references == 0) {
    assert(entry.findable);
    --idle_count_;
  }
  ++entry.references;
}

void BlockPool::release(BlockId block) {
  Block& entry = at(block);
  assert(entry.references > 0);
  if (--entry.references > 0) return;
  if (entry.findable) {
    ++idle_count_;
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
  --idle_count_;
  free_.push_back(block);
}

BlockId BlockPool::retire() {
  if (free_.empty()) return kNoBlock;
  retired_.push_back(free_.back());
  free_.pop_back();
  return retired_.back();
}

BlockId BlockPool::revive() {
  if (retired_.empty()) return kNoBlock;
  free_.push_back(retired_.back());
  retired_.pop_back();
  return free_.back();
}

void BlockPool::check() const {
  std::vector<bool> listed(blocks_.size());
  for (const std::vector<BlockId>* list : {&free_, &retired_}) {
    for (const BlockId block : *list) {
      if (listed[static_cast<std::size_t>(block)]) {
        throw std::logic_error("block pool: a block is in two lists");
      }
      listed[static_cast<std::size_t>(block)] = true;
    }
  }
  int idle = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const bool unused = blocks_[i].references == 0 && !blocks_[i].findable;
    if (unused != listed[i])
      throw std::logic_error("block pool: a block is lost, or listed in use");
    idle += blocks_[i].references == 0 && blocks_[i].findable;
  }
  if (idle != idle_count_) throw std::logic_error("block pool: wrong count of idle blocks");
}

}  // namespace bodega::cache
