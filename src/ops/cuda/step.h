#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "core/batch.h"
#include "ops/cuda/driver.h"
#include "ops/cuda/kernel_library.h"
#include "ops/cuda/kernels/args.h"
#include "ops/cuda/launch_list.h"
#include "ops/cuda/packed_matrix.h"
#include "ops/plan.h"

namespace bodega::ops::cuda {

// The kernels of one weight format.
struct LinearKernels {
  Kernel narrow8, narrow16;
  Kernel wide32, wide64, wide128;
  Kernel reduce;
  Kernel embed;
};
struct AttentionKernels {
  Kernel attend[2];  // one warp, four warps
  Kernel fold;
};

// Tiles of a step's rows for attention layers of one shape and window.
struct AttentionTable {
  std::vector<AttentionItem> items[2];  // for one warp, for four
  std::vector<FoldItem> folds;
  std::size_t states = 0;           // partial states of a kv head
  std::size_t item_offset[2] = {};  // bytes into the step's tables
  std::size_t fold_offset = 0;
};

// One step's integers, gathered in pinned memory and sent in one copy.
class StepTables {
 public:
  explicit StepTables(const Driver& driver) : driver_(driver) {}
  ~StepTables();
  StepTables(const StepTables&) = delete;
  StepTables& operator=(const StepTables&) = delete;

  void clear() { bytes_.clear(); }
  // Room is taken in powers of two, so that a table that grows seldom moves those behind it.
  template <typename T>
  std::size_t add(const std::vector<T>& values) {
    const std::size_t offset = bytes_.size();
    bytes_.resize(offset + std::bit_ceil(std::max<std::size_t>(256, values.size() * sizeof(T))));
    if (!values.empty()) {
      std::memcpy(bytes_.data() + offset, values.data(), values.size() * sizeof(T));
    }
    return offset;
  }
  void send(StreamHandle stream);
  DeviceAddress at(std::size_t offset) const { return device_.address() + offset; }

 private:
  static constexpr int kRing = 3;  // copies that may be under way
  struct Staging {
    void* memory = nullptr;
    std::size_t bytes = 0;
    EventHandle sent = nullptr;
  };

  const Driver& driver_;
  std::vector<std::uint8_t> bytes_;
  Staging ring_[kRing];
  int next_ = 0;
  DeviceMemory device_;
};

// Everything a step's launches read. Buffers grow to the largest step and stay.
struct StepState {
  explicit StepState(const Driver& given, const Plan& plan);

  const Driver& driver;
  const Plan& plan;
  KernelLibrary library;
  std::vector<std::unique_ptr<PackedMatrix>> matrices;
  std::vector<DeviceMemory> vectors;
  std::map<std::string, LinearKernels> linear_kernels;
  std::map<int, AttentionKernels> attention_kernels;
  Kernel prepare, rotary_table, rope;

  StreamHandle stream = nullptr;
  const core::Batch* batch = nullptr;
  int rows = 0;
  std::vector<DeviceMemory> slots;  // fp32 [T, cols]
  DeviceAddress logits = 0;
  std::vector<DeviceAddress> slabs;

  LaunchList launches;
  std::vector<DeviceMemory> retired;
  StepTables tables;
  std::size_t tokens = 0, positions = 0, row_blocks = 0, sampled = 0, blocks = 0;  // offsets
  std::map<std::tuple<int, int, int>, AttentionTable> attention;  // by heads, kv heads and window

  DeviceMemory x, sums, row_scale;  // prepared rows
  int sum_stride = 0;
  DeviceMemory slice_partial;
  DeviceMemory state_out, state_max, state_sum;
  std::map<std::pair<VectorId, float>, DeviceMemory> rotary;  // tables of this step
  std::vector<std::pair<VectorId, float>> rotary_filled;

  const PackedMatrix& matrix(MatrixId id) const { return *matrices[id]; }
  const LinearKernels& kernels_of(const PackedMatrix& w);
  const AttentionKernels& attention_of(int head_dim);
  const float* vector(VectorId id) const { return vectors[id].as<float>(); }
  template <typename T>
  void launch(const Kernel& kernel, Grid grid, unsigned threads, const T& arguments) {
    launches.add(kernel, grid, threads, arguments);
  }
  // Grows a buffer; the old one lives until the step's launches, which may name it, have been made.
  void reserve(DeviceMemory& memory, std::size_t bytes);
  // Tables and buffers for records [begin, end) of the plan on this batch.
  void bind(const core::Batch& given, std::size_t begin, std::size_t end);
  void submit();
};

void run_embed(StepState& s, const Embed& record);
void run_quant_linear(StepState& s, const QuantLinear& record);
void run_rope_and_cache_write(StepState& s, const RopeAndCacheWrite& record);
void run_paged_attention(StepState& s, const PagedAttention& record);
void run_lm_head(StepState& s, const LmHead& record);

// Rows of a slot as fp16 inputs of `w` in s.x. `row_list` as of PrepareArgs.
void prepare_rows(StepState& s, SlotId slot, const std::optional<Norm>& norm, const PackedMatrix& w,
                  const int* row_list, int count);
// Fills in what prepare_rows left and launches the product.
void multiply(StepState& s, const PackedMatrix& w, LinearArgs arguments);
AttentionTable attention_table(const core::Batch& batch, const AttentionShape& shape, int window,
                               int multiprocessors);

}  // namespace bodega::ops::cuda
