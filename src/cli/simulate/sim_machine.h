#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <variant>
#include <vector>

#include "cache/kv_cache.h"
#include "cli/simulate/histogram.h"
#include "cli/simulate/workload.h"
#include "cost/cost_model.h"
#include "schedule/scheduler.h"

namespace bodega::cli {

struct SimConfig {
  cost::MachineProfile machine;
  cost::ModelWork work;
  int blocks = 0;               // of the KV pool
  std::int64_t disk_bytes = 0;  // 0: no SSD rung
  cache::EvictionPolicy policy = cache::EvictionPolicy::kWorth;
  int fixed_chunk = 0;  // rows of a step by a constant instead of by price; 0: by price
  schedule::Limits limits;
  int queue_size = 1000;  // a request more is refused
};

struct SimStats {
  std::uint64_t finished = 0;
  std::uint64_t refused = 0;
  std::uint64_t preempted = 0;
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t new_tokens = 0;       // of them, never seen before on any machine
  std::uint64_t hot_tokens = 0;       // found in memory
  std::uint64_t restored_tokens = 0;  // read from the SSD
  std::uint64_t computed_tokens = 0;  // prompt tokens computed, again after preemption too
  std::uint64_t generated_tokens = 0;
  std::int64_t disk_bytes = 0;  // at the end
  std::int64_t disk_written = 0;
  double busy_s = 0;
  double end_s = 0;  // when the last request had its last token
  Histogram ttft;    // from arrival to the first token
  Histogram gap;     // between two tokens of one answer

  void merge(const SimStats& other);
};

// One machine in simulated time: the real scheduler, cache and cost model, and a device and an SSD
// that take as long as the model says.
class SimMachine {
 public:
  explicit SimMachine(const SimConfig& config);

  // Runs until the clock says so; a step that has begun is finished.
  void advance(double until_s);
  void submit(const SimRequest& request);  // after advance() to its arrival
  bool busy() const { return !live_.empty(); }
  int outstanding() const { return static_cast<int>(live_.size()); }
  SimStats stats() const;

 private:
  struct Live {
    double arrival_s;
    double last_token_s;
    std::uint64_t content;  // of the answer
    int offset;             // of its first token in the content
    int made;
    int wanted;
  };
  struct Transfer {
    double end_s;
    std::variant<cache::SpillJob, cache::RestoreJob> job;
  };

  void begin_transfers(schedule::StepPlan& plan);
  bool may_write(const schedule::StepPlan& plan) const;
  void end_transfers();
  double next_transfer_s() const;
  void finish_step(const schedule::StepPlan& plan);
  void deliver(const schedule::PlannedSlice& slice);

  SimConfig config_;
  cost::CostModel prices_;
  cache::KvCache cache_;
  schedule::Scheduler scheduler_;
  std::unordered_map<schedule::SequenceId, Live> live_;
  std::vector<Transfer> transfers_;
  double now_s_ = 0;
  double disk_free_s_ = 0;
  int writing_ = 0;
  schedule::SequenceId last_id_ = schedule::kNoSequence;
  SimStats stats_;
};

}  // namespace bodega::cli
