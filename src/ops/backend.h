#pragma once

#include <mlx/mlx.h>

#include <memory>
#include <optional>
#include <vector>

#include "core/batch.h"
#include "ops/kv_pool.h"
#include "ops/plan.h"

namespace bodega::ops {

// The activations between two segments of a plan: one array a slot, where it has been written.
struct StepArrays {
  std::vector<std::optional<mlx::core::array>> slots;
  std::optional<mlx::core::array> logits;  // [S, vocab] fp32
};

// A device's kernels. Records [begin, end) of a plan run as one MLX primitive; a record that
// `supports` refuses runs as its twin of stock MLX operations (reference/).
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;  // "cpu avx2", for /health and doctor

  virtual bool supports(const Record& record) const = 0;
  // How its attention wants the keys of a block: see KvLayout.
  virtual bool keys_by_dim() const { return false; }
  // Whether each kind of kernel is tried against its twin at start (self_check.h), for devices
  // whose drivers and compilers we cannot test on.
  virtual bool wants_self_check() const { return false; }

  // Repacks a matrix into the kernels' layout. Called once a matrix, before any step.
  virtual void load(MatrixId id) = 0;
  // Rows of a loaded matrix in fp32, [count, cols], for twins and self-checks.
  virtual void read_rows(MatrixId id, int row, int count, float* values) const = 0;

  // Adds the segment to the graph: reads slots and pool, rebinds what it writes.
  virtual void run(std::size_t begin, std::size_t end, std::shared_ptr<const core::Batch> batch,
                   KvPool& pool, StepArrays& arrays) = 0;

  // A step's logits where the host reads them fastest; many need no copy.
  virtual mlx::core::array to_host(const mlx::core::array& logits) { return logits; }
};

// Null where the device is absent from this build or machine. The plan must outlive the backend.
std::unique_ptr<Backend> make_cpu_backend(Plan& plan, int threads, bool fast);
std::unique_ptr<Backend> make_metal_backend(Plan& plan);
std::unique_ptr<Backend> make_cuda_backend(Plan& plan);

// The slots a record reads and writes (a residual slot is both).
struct SlotUse {
  std::vector<SlotId> reads;
  std::vector<SlotId> writes;
};
SlotUse slots_of(const Record& record, const Plan& plan);

// Records [begin, end) as one unit: the live slots they read before they write them, the slots that
// a later record reads (all that it writes for a single record: a self-check looks at them), and
// whether logits come out.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  bool logits = false;
};
Segment segment_of(const Plan& plan, std::size_t begin, std::size_t end);

}  // namespace bodega::ops
