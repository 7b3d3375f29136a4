#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace bodega::cache {

using BlockId = std::int32_t;
inline constexpr BlockId kNoBlock = -1;

// Who owns which KV block: integers only, the memory itself is the runner's. A block is
//   held      referenced by `references(b)` block tables or transfers,
//   idle      findable in the prefix index and not referenced,
//   free      neither, or
//   retired   its memory was given back to the system.
// Every operation is O(1). Which idle block goes when none is free is the Ladder's choice.
class BlockPool {
 public:
  explicit BlockPool(int blocks);

  // A free block with one reference; kNoBlock when there is none.
  BlockId allocate();
  void retain(BlockId block);
  // At the last reference a findable block becomes idle, others become free.
  void release(BlockId block);
  void set_findable(BlockId block, bool findable);

  BlockId retire();  // takes a free block out of use; kNoBlock when there is none
  BlockId revive();  // puts one back; kNoBlock when none is retired

  int total() const { return static_cast<int>(blocks_.size()); }
  int free() const { return static_cast<int>(free_.size()); }
  int idle() const { return idle_count_; }
  int retired() const { return static_cast<int>(retired_.size()); }
  int available() const { return free() + idle_count_; }
  int references(BlockId block) const { return at(block).references; }
  bool findable(BlockId block) const { return at(block).findable; }

  // Throws std::logic_error when the books do not balance.
  void check() const;

 private:
  struct Block {
    int references = 0;
    bool findable = false;
  };

  const Block& at(BlockId block) const { return blocks_[static_cast<std::size_t>(block)]; }
  Block& at(BlockId block) { return blocks_[static_cast<std::size_t>(block)]; }

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // a stack: what was freed last is warm in the processor's cache
  std::vector<BlockId> retired_;
  int idle_count_ = 0;
};

}  // namespace bodega::cache
