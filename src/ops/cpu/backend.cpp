#include "ops/backend.h"

#include <mlx/backend/cpu/encoder.h>
#include <mlx/primitives.h>

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "ops/cpu/step.h"

namespace bodega::ops {
namespace cpu {
namespace {

namespace mx = mlx::core;

class CpuBackend : public Backend {
 public:
  CpuBackend(Plan& plan, int threads, bool fast);

  const char* name() const override { return name_.c_str(); }
  bool supports(const Record& record) const override;
  bool keys_by_dim() const override { return true; }
  void load(MatrixId id) override;
  void read_rows(MatrixId id, int row, int count, float* values) const override;
  void run(std::size_t begin, std::size_t end, std::shared_ptr<const core::Batch> batch,
           KvPool& pool, StepArrays& arrays) override;

  // On MLX's stream thread: the arrays are allocated, their pointers valid.
  void execute(std::size_t begin, std::size_t end, const core::Batch& batch,
               const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs);

 private:
  bool shape_fits(const AttentionShape& shape) const;
  void bind_rows(const core::Batch& batch);
  void add_phases(std::size_t index);

  Plan& plan_;
  ThreadPool threads_;
  const Kernels& kernels_;
  bool fast_;  // int8 activations
  std::string name_;
  std::vector<std::unique_ptr<PackedMatrix>> matrices_;
  std::vector<bool> pair_;  // matrix feeds a gated unit
  int window_ = 0;          // of all attention layers, 0 where they differ
  StepState state_;
  std::vector<std::vector<float>> slot_memory_;
  std::vector<BoundRecord> bound_;
  PhaseList phases_;
};

// One segment of a plan as a single MLX graph node: MLX's cost a node is paid once a step.
class CpuSegment : public mx::Primitive {
 public:
  CpuSegment(mx::Stream stream, CpuBackend& backend, std::size_t begin, std::size_t end,
             std::shared_ptr<const core::Batch> batch, std::size_t slabs)
      : Primitive(stream),
        backend_(backend),
        begin_(begin),
        end_(end),
        batch_(std::move(batch)),
        slabs_(slabs) {}

  const char* name() const override { return "BodegaCpuSegment"; }
  void eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::logic_error("a CPU segment was put on a GPU stream");
  }
  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    for (std::size_t i = 0; i < slabs_; ++i) outputs[i].copy_shared_buffer(inputs[i]);
    for (std::size_t i = slabs_; i < outputs.size(); ++i) {
      outputs[i].set_data(mx::allocator::malloc(outputs[i].nbytes()));
    }
    mx::cpu::get_command_encoder(stream()).dispatch(
        [this_backend = &backend_, begin = begin_, end = end_, batch = batch_,
         in = unsafe_copies(inputs),
         out = std::make_shared<std::vector<mx::array>>(unsafe_copies(outputs))] {
          this_backend->execute(begin, end, *batch, in, *out);
        });
  }

 private:
  // Handles without a place in the graph, so that the task does not keep it alive.
  static std::vector<mx::array> unsafe_copies(const std::vector<mx::array>& arrays) {
    std::vector<mx::array> copies;
    copies.reserve(arrays.size());
    for (const mx::array& a : arrays) copies.push_back(mx::array::unsafe_weak_copy(a));
    return copies;
  }

  CpuBackend& backend_;
  std::size_t begin_;
  std::size_t end_;
  std::shared_ptr<const core::Batch> batch_;
  std::size_t slabs_;
};

bool glu(const QuantLinear& r) {
  return r.epilogue == Epilogue::kSwiGlu || r.epilogue == Epilogue::kGeGlu;
}

CpuBackend::CpuBackend(Plan& plan, int threads, bool fast)
    : plan_(plan),
      threads_(threads),
      kernels_(choose_kernels()),
      fast_(fast),
      name_(std::string("cpu ") + kernels_.name + (fast ? " fast" : "")),
      matrices_(plan.matrices.size()),
      pair_(plan.matrices.size(), false),
      slot_memory_(plan.slots.size()) {
  bool first = true;
  for (const Record& record : plan.records) {
    bound_.push_back({&record, &state_});
    if (const auto* r = std::get_if<QuantLinear>(&record); r != nullptr && glu(*r)) {
      pair_[r->weight] = true;
    }
    if (const auto* r = std::get_if<PagedAttention>(&record)) {
      window_ = first || window_ == r->window ? r->window : 0;
      first = false;
    }
  }
  state_.plan = &plan_;
  state_.kernels = &kernels_;
  state_.matrices = &matrices_;
  state_.threads = threads_.threads();
  state_.slots.resize(plan.slots.size());
  state_.worker_scratch.resize(threads_.threads());
  for (auto& lines : state_.worker_scratch) lines.resize(kScratchBytes / sizeof(CacheLine));
  state_.worker_rows.resize(threads_.threads());
}

bool CpuBackend::shape_fits(const AttentionShape& shape) const {
  return shape.head_dim % kMaxLanes == 0 && shape.head_dim <= kMaxHeadDim &&
         shape.heads / shape.kv_heads <= kAttentionRows;
}

bool CpuBackend::supports(const Record& record) const {
  auto packable = [&](MatrixId id) {
    return PackedMatrix::supports(plan_.matrices[id].format, plan_.matrices[id].cols);
  };
  if (const auto* r = std::get_if<Embed>(&record)) return packable(r->table);
  if (const auto* r = std::get_if<QuantLinear>(&record)) return packable(r->weight);
  if (const auto* r = std::get_if<LmHead>(&record)) return packable(r->weight);
  if (const auto* r = std::get_if<RopeAndCacheWrite>(&record)) return shape_fits(r->shape);
  if (const auto* r = std::get_if<PagedAttention>(&record)) return shape_fits(r->shape);
  return false;
}

void CpuBackend::load(MatrixId id) {
  matrices_[id] = std::make_unique<PackedMatrix>(
      *plan_.matrices[id].source, kernels_, PackedMatrix::Options{.pair = pair_[id], .fast = fast_},
      threads_);
}

void CpuBackend::read_rows(MatrixId id, int row, int count, float* values) const {
  const PackedMatrix& w = *matrices_[id];
  for (int i = 0; i < count; ++i) {
    w.read_row(row + i, values + static_cast<std::size_t>(i) * w.cols());
  }
}

void CpuBackend::run(std::size_t begin, std::size_t end, std::shared_ptr<const core::Batch> batch,
                     KvPool& pool, StepArrays& arrays) {
  const Segment s = segment_of(plan_, begin, end);
  std::vector<mx::array> inputs = pool.slabs();
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> types;
  for (const mx::array& slab : pool.slabs()) {
    shapes.push_back(slab.shape());
    types.push_back(slab.dtype());
  }
  for (SlotId slot : s.inputs) {
    // A slot read in part before it was ever written starts as zeros.
    inputs.push_back(arrays.slots[slot] ? mx::contiguous(*arrays.slots[slot])
                                        : mx::zeros({batch->rows(), plan_.slots[slot].cols}));
  }
  for (SlotId slot : s.outputs) {
    shapes.push_back({batch->rows(), plan_.slots[slot].cols});
    types.push_back(mx::float32);
  }
  if (s.logits) {
    shapes.push_back({static_cast<int>(batch->sampled_rows.size()), plan_.vocab_size});
    types.push_back(mx::float32);
  }
  auto primitive = std::make_shared<CpuSegment>(mx::default_stream(mx::Device::cpu), *this, begin,
                                                end, std::move(batch), pool.slabs().size());
  std::vector<mx::array> outputs = mx::array::make_arrays(shapes, types, primitive, inputs);
  std::size_t next = 0;
  for (mx::array& slab : pool.slabs()) slab = outputs[next++];
  for (SlotId slot : s.outputs) arrays.slots[slot] = outputs[next++];
  if (s.logits) arrays.logits = outputs[next];
}

void CpuBackend::bind_rows(const core::Batch& batch) {
  state_.batch = &batch;
  state_.rows = batch.rows();
  state_.row_sequence.resize(static_cast<std::size_t>(state_.rows));
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const core::SequenceSlice& slice = batch.sequences[i];
    std::fill_n(state_.row_sequence.begin() + slice.row_begin, slice.row_count,
                static_cast<int>(i));
  }
  for (std::size_t slot = 0; slot < slot_memory_.size(); ++slot) {
    const std::size_t size = static_cast<std::size_t>(state_.rows) * plan_.slots[slot].cols;
    if (slot_memory_[slot].size() < size) slot_memory_[slot].resize(size);
    state_.slots[slot] = slot_memory_[slot].data();
  }
}

void CpuBackend::add_phases(std::size_t index) {
  using Add = void (*)(BoundRecord&, PhaseList&);
  static constexpr Add kAdd[] = {add_embed,           add_quant_linear, add_rope_and_cache_write,
                                 add_paged_attention, nullptr,          add_lm_head};
  kAdd[plan_.records[index].index()](bound_[index], phases_);
}

void CpuBackend::execute(std::size_t begin, std::size_t end, const core::Batch& batch,
                         const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  const Segment s = segment_of(plan_, begin, end);
  bind_rows(batch);
  const std::size_t slabs = inputs.size() - s.inputs.size();
  state_.slabs.clear();
  state_.writable_slabs.clear();
  for (std::size_t i = 0; i < slabs; ++i) {
    auto* data = reinterpret_cast<std::uint16_t*>(outputs[i].data<mx::float16_t>());
    state_.slabs.push_back(data);
    state_.writable_slabs.push_back(data);
  }
  for (std::size_t i = 0; i < s.inputs.size(); ++i) {
    std::memcpy(state_.slots[s.inputs[i]], inputs[slabs + i].data<float>(),
                inputs[slabs + i].nbytes());
  }
  state_.logits = s.logits ? outputs.back().data<float>() : nullptr;
  phases_.clear();
  for (RotaryTable& table : state_.rotary) table.filled = false;
  bool tables = false;
  for (std::size_t i = begin; i < end; ++i) {
    if (const auto* r = std::get_if<PagedAttention>(&plan_.records[i]); r != nullptr && !tables) {
      build_attention_items(state_, r->shape, window_);
      tables = true;
    }
    add_phases(i);
  }
  threads_.run(phases_);
  for (std::size_t i = 0; i < s.outputs.size(); ++i) {
    std::memcpy(outputs[slabs + i].data<float>(), state_.slots[s.outputs[i]],
                outputs[slabs + i].nbytes());
  }
}

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(Plan& plan, int threads, bool fast) {
  return std::make_unique<cpu::CpuBackend>(plan, threads, fast);
}

}  // namespace bodega::ops
