#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cache/disk_index.h"
#include "cache/ghosts.h"
#include "cache/prefix_index.h"
#include "cache/worth_order.h"
#include "cost/cost_model.h"

namespace bodega::cache {

// Which block goes when one is needed. The last two are yardsticks for simulations.
enum class EvictionPolicy { kWorth, kLeastRecent, kFirstIn };

// What an idle block is worth, and so who goes and who is written to the SSD first:
//   worth = clock + (1 + log2 uses) x seconds that it saves,
// where the clock is the worth of what went last (GreedyDual-Size with frequency, Cherkasova 1998),
// so that uses long ago count less and less. A block saves the time to compute it again, or to read
// it back when the SSD has it. Only leaves of the prefix tree are in order: a prefix without its
// beginning is of no use. Idle: findable, and held by no table.
class Ladder {
 public:
  struct Config {
    EvictionPolicy policy = EvictionPolicy::kWorth;
    std::int64_t disk_bytes = 0;  // budget of the SSD rung; 0: there is none
  };
  // `prices` may be null: all blocks save the same then. `index` must outlive this.
  Ladder(int blocks, const Config& config, const PrefixIndex& index, const cost::CostModel* prices);

  void published(BlockId block);           // became findable, held
  void used(BlockId block);                // found again by another request
  void idle(BlockId block, bool refresh);  // `refresh`: it was in use, not only being written
  void held(BlockId block);                // is idle no longer
  void evicted(BlockId block);             // call before the index forgets it
  void uncovered(BlockId block);           // idle, and its last child is gone

  BlockId victim() const;         // kNoBlock: no idle block is a leaf
  BlockId next_to_write() const;  // the least of those that the SSD should have and has not
  // Findable blocks behind this one that may not go without a write.
  int open_children(BlockId block) const { return at(block).open_children; }
  bool should_write(BlockId block) const;
  int clean() const { return clean_count_; }  // idle blocks that may go without a write

  DiskIndex& disk() { return disk_; }
  const DiskIndex& disk() const { return disk_; }
  bool has_disk() const { return config_.disk_bytes > 0; }
  double saved_seconds() const { return static_cast<double>(saved_ns_) * 1e-9; }  // by used()

  // Throws std::logic_error unless exactly the idle leaves are in order.
  void check(const BlockPool& pool) const;

 private:
  struct State {
    std::int64_t base = 0;  // the clock when it was used last
    std::int32_t uses = 0;
    std::int32_t open_children = 0;
    bool idle = false;
    bool clean = false;
  };

  State& at(BlockId block) { return states_[static_cast<std::size_t>(block)]; }
  const State& at(BlockId block) const { return states_[static_cast<std::size_t>(block)]; }
  std::int64_t worth(BlockId block) const;
  std::int64_t recompute_ns(BlockId block) const;
  std::int64_t reload_ns() const;
  void open(BlockId parent, int change);
  void consider_writing(BlockId block);

  Config config_;
  const PrefixIndex& index_;
  const cost::CostModel* prices_;
  DiskIndex disk_;
  Ghosts ghosts_;
  std::vector<State> states_;  // [blocks]
  WorthOrder leaves_;          // idle ones: who may go
  WorthOrder writable_;        // idle ones that the SSD should have, with nothing such behind them
  std::int64_t clock_ = 0;
  std::uint64_t saved_ns_ = 0;
  int clean_count_ = 0;
};

}  // namespace bodega::cache
