#pragma once

#include <mlx/mlx.h>

#include <memory>
#include <string>
#include <vector>

#include "core/batch.h"
#include "ops/backend.h"
#include "ops/kv_pool.h"
#include "ops/plan.h"
#include "ops/reference/weights.h"

namespace bodega::ops {

struct ExecutorOptions {
  std::int64_t kv_bytes = std::int64_t{1} << 30;
  int threads = 0;         // 0 = cpu_count()
  bool reference = false;  // twins only: the fp32 yardstick of tests and self-checks
  bool fast = false;  // int8 activations on the CPU: faster, and 27 in 1000 greedy tokens differ
  bool self_check = true;  // try each kind of kernel at start where the device asks for it
};

// How far a record's kernel is from its twin, on the same inputs.
struct RecordCheck {
  std::size_t index = 0;
  std::string operation;
  double relative_error = 0;  // max |kernel - twin| / max |twin|
};

// Runs a plan on a device: loads its weights, owns the KV pool, turns a batch into logits. Belongs
// to the thread that made it.
class Executor {
 public:
  Executor(Plan plan, mlx::core::Device device, ExecutorOptions options);

  const Plan& plan() const { return plan_; }
  KvPool& pool() { return pool_; }
  const KvPool& pool() const { return pool_; }
  // "cpu avx2" or "stock MLX operations"; `exact` when every record has a kernel of ours.
  std::string kernels() const;
  bool exact() const;

  // The graph of one step: fp32 logits of the sampled rows, [S, vocab]. Nothing runs before eval;
  // evaluate it (async_eval) before the next step is recorded.
  mlx::core::array step(const core::Batch& batch);

  // The same logits where the host reads them without a detour.
  mlx::core::array to_host(const mlx::core::array& logits) {
    return backend_ != nullptr ? backend_->to_host(logits) : logits;
  }

  // Runs the batch record by record and compares each kernel with its twin.
  std::vector<RecordCheck> check_records(const core::Batch& batch);

 private:
  void drop_wrong_kernels();
  void load_weights();
  void run_twin(std::size_t index, const core::Batch& batch, StepArrays& arrays);

  Plan plan_;
  mlx::core::Device device_;
  std::unique_ptr<Backend> backend_;
  KvPool pool_;
  std::vector<bool> has_kernel_;  // one a record
  std::unique_ptr<reference::Weights> twin_weights_;
};

}  // namespace bodega::ops
