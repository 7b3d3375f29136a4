#include "ops/backend.h"

#include <mlx/primitives.h>

#include <algorithm>
#include <stdexcept>

#include "base/cpu.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "ops/cuda/mlx_bridge.h"
#include "ops/cuda/pinned_pool.h"
#include "ops/cuda/step.h"

namespace bodega::ops {
namespace cuda {
namespace {

namespace mx = mlx::core;

constexpr int kLeastArchitecture = 80;  // cp.async, fp16 mma

class CudaBackend : public Backend {
 public:
  CudaBackend(Plan& plan, const Driver& driver, const MlxBridge& bridge);
  ~CudaBackend() override { mx::synchronize(); }

  const char* name() const override { return name_.c_str(); }
  bool supports(const Record& record) const override;
  void load(MatrixId id) override;
  void read_rows(MatrixId id, int row, int count, float* values) const override;
  void run(std::size_t begin, std::size_t end, std::shared_ptr<const core::Batch> batch,
           KvPool& pool, StepArrays& arrays) override;
  mx::array to_host(const mx::array& logits) override;

  // Puts the segment's launches on MLX's stream.
  void execute(const Segment& segment, const core::Batch& batch, const mx::Stream& stream,
               const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs);

 private:
  static bool shape_fits(const AttentionShape& shape);
  void launch(const Record& record);

  Plan& plan_;
  const Driver& driver_;
  const MlxBridge& bridge_;
  std::string name_;
  ThreadPool packers_;
  StepState state_;
  std::vector<bool> pair_;  // matrix feeds a gated unit
};

// One segment of a plan as a single MLX graph node.
class CudaSegment : public mx::Primitive {
 public:
  CudaSegment(mx::Stream stream, CudaBackend& backend, Segment segment,
              std::shared_ptr<const core::Batch> batch, std::size_t slabs)
      : Primitive(stream),
        backend_(backend),
        segment_(std::move(segment)),
        batch_(std::move(batch)),
        slabs_(slabs) {}

  const char* name() const override { return "BodegaCudaSegment"; }
  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::logic_error("a CUDA segment was put on a CPU stream");
  }
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    for (std::size_t i = 0; i < slabs_; ++i) outputs[i].copy_shared_buffer(inputs[i]);
    for (std::size_t i = slabs_; i < outputs.size(); ++i) {
      const bool logits = segment_.logits && i + 1 == outputs.size();
      if (!logits) outputs[i].set_data(mx::allocator::malloc(outputs[i].nbytes()));
    }
    backend_.execute(segment_, *batch_, stream(), inputs, outputs);
  }

 private:
  CudaBackend& backend_;
  Segment segment_;
  std::shared_ptr<const core::Batch> batch_;
  std::size_t slabs_;
};

void release_logits(DeviceAddress memory, StreamHandle stream, bool unified) {
  const Driver& driver = *Driver::find();
  driver.make_current();
  if (unified) {
    driver.release(memory);
  } else {
    driver.release_async(memory, stream);
  }
}

void release_pinned(DeviceAddress memory, StreamHandle, bool) { PinnedPool::shared().give(memory); }

// Copies an array to where the host reads it without MLX's detour over managed memory and page
// faults.
class CudaDownload : public mx::Primitive {
 public:
  CudaDownload(mx::Stream stream, const Driver& driver, const MlxBridge& bridge)
      : Primitive(stream), driver_(driver), bridge_(bridge) {}

  const char* name() const override { return "BodegaCudaDownload"; }
  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::logic_error("a CUDA download was put on a CPU stream");
  }
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    StreamHandle on = bridge_.stream(stream());
    const std::size_t bytes = outputs[0].nbytes();
    const DeviceAddress memory = PinnedPool::shared().take(bytes);
    bridge_.adopt(outputs[0], memory, bytes, -1, on, release_pinned);
    driver_.download_async(reinterpret_cast<void*>(memory), bridge_.address(inputs[0]), bytes, on);
  }

 private:
  const Driver& driver_;
  const MlxBridge& bridge_;
};

CudaBackend::CudaBackend(Plan& plan, const Driver& driver, const MlxBridge& bridge)
    : plan_(plan),
      driver_(driver),
      bridge_(bridge),
      name_("cuda sm_" + std::to_string(driver.architecture())),
      packers_(cpu_count()),
      state_(driver, plan),
      pair_(plan.matrices.size(), false) {
  for (const Record& record : plan.records) {
    const auto* r = std::get_if<QuantLinear>(&record);
    if (r == nullptr) continue;
    if (r->epilogue == Epilogue::kSwiGlu || r->epilogue == Epilogue::kGeGlu)
      pair_[r->weight] = true;
  }
}

bool CudaBackend::shape_fits(const AttentionShape& shape) {
  return (shape.head_dim == 64 || shape.head_dim == 128) && shape.heads % shape.kv_heads == 0;
}

bool CudaBackend::supports(const Record& record) const {
  auto fits = [&](MatrixId id) {
    return packable(plan_.matrices[id].format, plan_.matrices[id].cols);
  };
  if (const auto* r = std::get_if<Embed>(&record)) return fits(r->table);
  if (const auto* r = std::get_if<QuantLinear>(&record)) return fits(r->weight);
  if (const auto* r = std::get_if<LmHead>(&record)) return fits(r->weight);
  if (const auto* r = std::get_if<RopeAndCacheWrite>(&record)) return shape_fits(r->shape);
  if (const auto* r = std::get_if<PagedAttention>(&record)) return shape_fits(r->shape);
  return false;
}

void CudaBackend::load(MatrixId id) {
  driver_.make_current();
  state_.matrices[id] =
      std::make_unique<PackedMatrix>(pack(*plan_.matrices[id].source, pair_[id], packers_));
  state_.kernels_of(*state_.matrices[id]);  // compiled before the first step
}

void CudaBackend::read_rows(MatrixId id, int row, int count, float* values) const {
  const PackedMatrix& w = state_.matrix(id);
  driver_.make_current();
  for (int i = 0; i < count; ++i) {
    w.read_row(row + i, values + static_cast<std::size_t>(i) * w.cols());
  }
}

void CudaBackend::run(std::size_t begin, std::size_t end, std::shared_ptr<const core::Batch> batch,
                      KvPool& pool, StepArrays& arrays) {
  Segment s = segment_of(plan_, begin, end);
  std::vector<mx::array> inputs = pool.slabs();
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> types;
  for (const mx::array& slab : pool.slabs()) {
    shapes.push_back(slab.shape());
    types.push_back(slab.dtype());
  }
  for (SlotId slot : s.inputs) {
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
  auto primitive = std::make_shared<CudaSegment>(mx::default_stream(mx::Device::gpu), *this, s,
                                                 std::move(batch), pool.slabs().size());
  std::vector<mx::array> outputs = mx::array::make_arrays(shapes, types, primitive, inputs);
  std::size_t next = 0;
  for (mx::array& slab : pool.slabs()) slab = outputs[next++];
  for (SlotId slot : s.outputs) arrays.slots[slot] = outputs[next++];
  if (s.logits) arrays.logits = outputs[next];
}

mx::array CudaBackend::to_host(const mx::array& logits) {
  if (logits.size() == 0) return logits;
  auto primitive =
      std::make_shared<CudaDownload>(mx::default_stream(mx::Device::gpu), driver_, bridge_);
  return {logits.shape(), logits.dtype(), std::move(primitive), {mx::contiguous(logits)}};
}

void CudaBackend::launch(const Record& record) {
  if (const auto* r = std::get_if<Embed>(&record)) return run_embed(state_, *r);
  if (const auto* r = std::get_if<QuantLinear>(&record)) return run_quant_linear(state_, *r);
  if (const auto* r = std::get_if<RopeAndCacheWrite>(&record)) {
    return run_rope_and_cache_write(state_, *r);
  }
  if (const auto* r = std::get_if<PagedAttention>(&record)) return run_paged_attention(state_, *r);
  if (const auto* r = std::get_if<LmHead>(&record)) return run_lm_head(state_, *r);
  throw std::logic_error("a record without a CUDA kernel");
}

void CudaBackend::execute(const Segment& segment, const core::Batch& batch,
                          const mx::Stream& stream, const std::vector<mx::array>& inputs,
                          std::vector<mx::array>& outputs) {
  state_.stream = bridge_.stream(stream);
  const std::size_t slabs = inputs.size() - segment.inputs.size();
  state_.slabs.clear();
  for (std::size_t i = 0; i < slabs; ++i) state_.slabs.push_back(bridge_.address(outputs[i]));
  state_.bind(batch, segment.begin, segment.end);
  for (std::size_t i = 0; i < segment.inputs.size(); ++i) {
    driver_.copy_async(state_.slots[segment.inputs[i]].address(),
                       bridge_.address(inputs[slabs + i]), inputs[slabs + i].nbytes(),
                       state_.stream);
  }
  if (segment.logits) {
    mx::array& logits = outputs.back();
    const std::size_t bytes = std::max<std::size_t>(logits.nbytes(), 16);
    state_.logits = driver_.allocate_async(bytes, state_.stream);
    bridge_.adopt(logits, state_.logits, bytes, 0, state_.stream, release_logits);
  }
  for (std::size_t i = segment.begin; i < segment.end; ++i) launch(plan_.records[i]);
  state_.submit();
  for (std::size_t i = 0; i < segment.outputs.size(); ++i) {
    driver_.copy_async(bridge_.address(outputs[slabs + i]),
                       state_.slots[segment.outputs[i]].address(), outputs[slabs + i].nbytes(),
                       state_.stream);
  }
}

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(Plan& plan) {
  if (!mlx::core::is_available(mlx::core::Device::gpu)) return nullptr;
  const cuda::Driver* driver = cuda::Driver::find();
  if (driver == nullptr || driver->architecture() < cuda::kLeastArchitecture) return nullptr;
  const cuda::MlxBridge* bridge = cuda::find_bridge();
  if (bridge == nullptr) return nullptr;
  driver->make_current();
  return std::make_unique<cuda::CudaBackend>(plan, *driver, *bridge);
}

}  // namespace bodega::ops
