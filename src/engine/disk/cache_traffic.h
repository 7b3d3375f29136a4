#pragma once

#include <memory>

#include "cache/kv_cache.h"
#include "cost/cost_model.h"
#include "engine/disk/block_io.h"
#include "schedule/scheduler.h"

namespace bodega::engine {

// Between the cache's plans and the I/O thread: starts transfers where a step leaves room for them,
// and tells the scheduler and the cost model how they ended. Belongs to the engine's thread.
class CacheTraffic {
 public:
  // `io` may be null: there is no SSD rung.
  CacheTraffic(cache::KvCache& cache, schedule::Scheduler& scheduler, cost::CostModel* prices,
               std::unique_ptr<BlockIo> io);

  // Before a step is planned: what has ended.
  void settle();
  // With a planned step: its restores, and writes when arithmetic or nothing bounds it.
  void start(schedule::StepPlan& plan);
  // At the end, when nobody holds a block: writes what is worth it, for so long at most.
  void flush(double seconds);

  bool waits_for_disk() const { return reading_ > 0; }

 private:
  void end(SpillDone& done);
  void end(RestoreDone& done);
  void end(std::vector<BlockStore::Found>& found);
  bool may_write(const schedule::StepPlan& plan) const;
  void write_next(bool all);

  cache::KvCache& cache_;
  schedule::Scheduler& scheduler_;
  cost::CostModel* prices_;
  std::unique_ptr<BlockIo> io_;
  int reading_ = 0;
  int writing_ = 0;
  int failures_ = 0;          // of writes, one after the other
  double write_again_s_ = 0;  // monotonic clock
  double look_again_s_ = 0;
  double wrote_s_ = 0;  // when a write ended last, or the only one began
};

}  // namespace bodega::engine
