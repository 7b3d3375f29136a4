#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "base/thread_pool.h"
#include "core/batch.h"
#include "ops/metal/gpu.h"
#include "ops/metal/packed_matrix.h"
#include "ops/metal/params.h"
#include "ops/metal/step_tables.h"
#include "ops/plan.h"

namespace bodega::ops::metal {

inline constexpr int kMaxSlabs = 4;  // of the KV pool, as the kernels bind them

struct LoadedMatrix {
  PackedLayout layout;
  std::unique_ptr<Memory> memory;
};

// Attention work of a step for layers of one shape and window, inside StepState::tables.
struct AttentionTable {
  std::size_t items = 0;  // byte offsets
  std::size_t folds = 0;
  int item_count = 0;
  int fold_count = 0;
};

// Everything the dispatches of a step read and write. Buffers grow to the largest step and stay.
class StepState {
 public:
  // `wide_inputs`: linear layers take fp32 inputs instead of fp16, for a model whose activations
  // exceed 65504.
  StepState(Gpu& gpu, const Plan& plan, bool wide_inputs = false);

  // Packs a matrix into memory of the GPU. `pair`: its rows feed a gated unit.
  void load(MatrixId id, bool pair, ThreadPool& pool);

  // Before the dispatches of records [begin, end): sizes buffers, writes the step's tables. Slots
  // that are not in `given` live in memory of the state.
  void bind(const core::Batch& batch, std::size_t begin, std::size_t end,
            std::vector<Memory*> given_slots, std::vector<Memory*> slabs, Memory* logits);

  Gpu& gpu;
  const Plan& plan;
  bool wide_inputs;
  std::vector<LoadedMatrix> matrices;
  std::vector<std::unique_ptr<Memory>> vectors;

  int rows = 0;
  int sampled = 0;
  std::vector<Memory*> slots;  // fp32 [rows, cols]
  std::vector<Memory*> slabs;  // kMaxSlabs, the last one repeated
  Memory* logits = nullptr;    // [sampled, vocab]

  std::unique_ptr<Memory> tables;  // of this step: integers, at these byte offsets
  std::size_t tokens = 0, sampled_rows = 0, places = 0, blocks = 0;
  std::map<std::tuple<int, int, int>, AttentionTable> attention;  // by heads, kv heads, window

  std::unique_ptr<Memory> prepared, sums;  // rows of the linear that runs next
  std::unique_ptr<Memory> partial_values, partial_state;

  const LoadedMatrix& matrix(MatrixId id) const { return matrices[id]; }
  // The vector's memory, or any where there is none.
  Memory* vector(VectorId id) const { return id < 0 ? vectors.back().get() : vectors[id].get(); }
  const AttentionTable& attention_table(const PagedAttention& record) const;

 private:
  class Tables;
  void grow(std::unique_ptr<Memory>& memory, std::size_t bytes);
  void reserve_inputs(std::size_t begin, std::size_t end);
  void write_tables(const core::Batch& batch, std::size_t begin, std::size_t end);

  std::vector<std::unique_ptr<Memory>> slot_memory_;
};

void run_embed(StepState& s, const Embed& record);
void run_quant_linear(StepState& s, const QuantLinear& record);
void run_rope_and_cache_write(StepState& s, const RopeAndCacheWrite& record);
void run_paged_attention(StepState& s, const PagedAttention& record);
void run_lm_head(StepState& s, const LmHead& record);

// Whether the kernels can do the record; matrices by format and shape, heads by size.
bool has_kernel(const Record& record, const Plan& plan);
void run_record(StepState& s, const Record& record);

// Norm and rounding of `count` rows of a slot for the product with `w`. `index`: an offset into the
// tables, the rows to take; negative = the first ones.
struct PrepareRows {
  Memory* in;
  const std::optional<Norm>& norm;
  std::ptrdiff_t index = -1;
  int count;
};
void prepare_rows(StepState& s, const PrepareRows& rows, const LoadedMatrix& w);

enum class LinearEpilogue { kStore, kResidual, kSwiGlu, kGeGlu, kLogits };
struct Product {
  LinearEpilogue epilogue;
  std::optional<VectorId> bias;
  Memory* out;
  int out_stride;
  int out_column = 0;
  float scale = 1.0F;
  float soft_cap = 0.0F;
};
void multiply(StepState& s, const LoadedMatrix& w, int rows, const Product& product);

}  // namespace bodega::ops::metal
