#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "core/batch.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/packed_matrix.h"
#include "ops/plan.h"

namespace bodega::ops::cpu {

// A stretch of rows of one sequence that reads the same keys, and the pieces of a long cache it
// covers: one unit of attention work for each kv head.
struct AttentionItem {
  int sequence = 0;
  int row = 0;  // first row of the batch
  int row_count = 0;
  int split_begin = 0;
  int split_end = 0;
  int partial = -1;  // first of row_count partial states, when other items share these rows
};

// Rows whose pieces were computed apart and are folded in order afterwards.
struct FoldItem {
  int row = 0;
  int partial = 0;  // of the first split
  int splits = 0;
};

struct alignas(64) CacheLine {
  std::uint8_t bytes[64];
};

// cos and sin of every row's angles, shared by all layers that turn alike.
struct RotaryTable {
  VectorId inv_freq = -1;
  float scale = 1.0F;
  std::vector<float> cos, sin;  // [T, rotary_dim / 2]
  bool filled = false;          // for this step
};

// Everything a step's phases read and write. Buffers grow to the largest step and stay.
struct StepState {
  const Plan* plan = nullptr;
  const Kernels* kernels = nullptr;
  const std::vector<std::unique_ptr<PackedMatrix>>* matrices = nullptr;
  int threads = 1;

  const core::Batch* batch = nullptr;
  int rows = 0;
  std::vector<float*> slots;                // [T, cols] each
  std::vector<const std::uint16_t*> slabs;  // read
  std::vector<std::uint16_t*> writable_slabs;
  float* logits = nullptr;        // [S, vocab]
  std::vector<int> row_sequence;  // row -> index into batch->sequences
  std::vector<RotaryTable> rotary;

  // Inputs of the linear layer that runs next, prepared once for all its tiles.
  std::vector<float> dense_rows;  // [T, cols], normalised
  std::vector<std::int32_t> q;
  std::vector<float> q_scale, q_sum;
  std::vector<std::int32_t> q_isum;

  std::vector<AttentionItem> attention_items;
  std::vector<FoldItem> fold_items;
  std::vector<float> partial_values;            // [partials, heads, head_dim]
  std::vector<float> partial_max, partial_sum;  // [partials, heads]

  std::vector<std::vector<CacheLine>> worker_scratch;  // kernel scratch, one a worker
  std::vector<std::vector<float>> worker_rows;         // row buffers, one a worker

  float* row(SlotId slot, int r) const {
    return slots[slot] + static_cast<std::size_t>(r) * plan->slots[slot].cols;
  }
  const PackedMatrix& matrix(MatrixId id) const { return *(*matrices)[id]; }
  const float* vector(VectorId id) const { return plan->vectors[id].values.data(); }
  QuantizedRows quantized(const PackedView& w, int count) {
    return {q.data(), q_scale.data(),       q_sum.data(), q_isum.data(),
            w.cols,   interleave_of(count), w.activations};
  }
};

// One record bound to the step state; phases point at it, so it does not move.
struct BoundRecord {
  const Record* record = nullptr;
  StepState* state = nullptr;
  int chunk_rows = 1;   // of preparing phases
  int chunk_units = 1;  // tile pairs a chunk of a multiplying phase takes
  int rotary = 0;       // index of the record's table
};

using PhaseList = std::vector<ThreadPool::Phase>;

// Each adds its record's phases; called once a step, single-threaded.
void add_embed(BoundRecord& bound, PhaseList& phases);
void add_quant_linear(BoundRecord& bound, PhaseList& phases);
void add_rope_and_cache_write(BoundRecord& bound, PhaseList& phases);
void add_paged_attention(BoundRecord& bound, PhaseList& phases);
void add_lm_head(BoundRecord& bound, PhaseList& phases);

// Prepares rows [begin, end) of a linear's input: norm, then int16 or fp32 as the matrix wants.
// `source(i)` is input row i.
struct LinearInput {
  StepState* state;
  const Norm* norm;  // null = none
  const PackedView* matrix;
  int rows;
};
void prepare_row(const LinearInput& input, const float* x, int row);
// Sizes the shared input buffers for `rows` rows of `cols`.
void reserve_input(StepState& state, int rows, int cols);
// Tile pairs (gate with up, or neighbours) of a matrix, and the two tiles of one.
int unit_count(const PackedMatrix& w, bool pair);
struct UnitTiles {
  int first;
  int second;  // -1 = none
};
UnitTiles unit_tiles(const PackedMatrix& w, bool pair, int unit);
// Multiplies one unit with all prepared rows: [rows, 2 * lanes] in the worker's row buffer.
const float* multiply_unit(StepState& state, const PackedMatrix& w, UnitTiles tiles, int rows,
                           int worker);
int units_per_chunk(const StepState& state, const PackedMatrix& w, int units, int rows);

// Once a step, for all layers: `window` is theirs where they agree, else 0.
void build_attention_items(StepState& state, const AttentionShape& shape, int window);

}  // namespace bodega::ops::cpu
