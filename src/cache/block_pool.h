#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace bodega::cache {

using BlockId = std::int32_t;
inline constexpr BlockId kNoBlock = -1;

// Who owns which KV block: integers only, the memory itself is the runner's. A block is
//   held      referenced by `references(b)` block tables,
//   findable  in the prefix index; unreferenced it stays in least-recently-used order, or
//   free      neither.
// Every operation is O(1).
class BlockPool {
 public:
  struct Allocation {
    BlockId block = kNoBlock;
    bool was_findable = false;  // the caller has to take it out of the index
  };

  explicit BlockPool(int blocks);

  // A block with one reference: a free one, else the findable block unused for longest.
  std::optional<Allocation> allocate();
  void retain(BlockId block);
  // At the last reference a findable block becomes the most recently used one, others become free.
  void release(BlockId block);
  void set_findable(BlockId block, bool findable);

  int total() const { return static_cast<int>(blocks_.size()); }
  int available() const { return static_cast<int>(free_.size()) + cached_count_; }
  int cached() const { return cached_count_; }  // findable and not referenced
  int references(BlockId block) const { return at(block).references; }
  bool findable(BlockId block) const { return at(block).findable; }

  // Unreferenced findable blocks, the next victim first.
  std::vector<BlockId> eviction_order() const;

  // Throws std::logic_error when the books do not balance.
  void check() const;

 private:
  struct Block {
    int references = 0;
    bool findable = false;
    BlockId older = kNoBlock;  // neighbours in the list of cached blocks
    BlockId newer = kNoBlock;
  };

  const Block& at(BlockId block) const { return blocks_[static_cast<std::size_t>(block)]; }
  Block& at(BlockId block) { return blocks_[static_cast<std::size_t>(block)]; }
  void append_cached(BlockId block);
  void unlink_cached(BlockId block);

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // a stack: what was freed last is warm in the processor's cache
  BlockId oldest_ = kNoBlock;
  BlockId newest_ = kNoBlock;
  int cached_count_ = 0;
};

}  // namespace bodega::cache
