#pragma once

#include <cstdint>
#include <vector>

#include "cache/block_pool.h"

namespace bodega::cache {

// Blocks in order of what they are worth, the least first; a heap that knows each block's place.
// Ties go to the block that came in first.
class WorthOrder {
 public:
  explicit WorthOrder(int blocks) : places_(static_cast<std::size_t>(blocks), kAbsent) {}

  bool empty() const { return heap_.empty(); }
  int size() const { return static_cast<int>(heap_.size()); }
  bool contains(BlockId block) const { return place(block) != kAbsent; }
  BlockId first() const { return heap_.front().block; }
  std::int64_t least() const { return heap_.front().worth; }

  void insert(BlockId block, std::int64_t worth);
  void erase(BlockId block);  // nothing happens when it is not there

  // Throws std::logic_error when the heap is none, or places are wrong.
  void check() const;

 private:
  static constexpr std::int32_t kAbsent = -1;
  struct Node {
    std::int64_t worth;
    std::uint64_t arrival;
    BlockId block;
    bool before(const Node& other) const {
      return worth != other.worth ? worth < other.worth : arrival < other.arrival;
    }
  };

  std::int32_t place(BlockId block) const { return places_[static_cast<std::size_t>(block)]; }
  void put(std::size_t index, const Node& node);
  void rise(std::size_t index);
  void sink(std::size_t index);

  std::vector<Node> heap_;
  std::vector<std::int32_t> places_;  // [blocks]
  std::uint64_t arrivals_ = 0;
};

}  // namespace bodega::cache
