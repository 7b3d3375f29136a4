#include "ops/backend.h"

#include <mlx/backend/metal/device.h>
#include <mlx/backend/metal/metal.h>
#include <mlx/primitives.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "base/cpu.h"
#include "base/env.h"
#include "base/errors.h"
#include "base/thread_pool.h"
#include "ops/metal/kernel_sources.h"
#include "ops/metal/step.h"

namespace bodega::ops {
namespace metal {
namespace {

namespace mx = mlx::core;

// An MLX array as memory of the kernels.
class ArrayMemory : public Memory {
 public:
  explicit ArrayMemory(mx::array given) : array(std::move(given)) {}
  std::uint8_t* data() override { return reinterpret_cast<std::uint8_t*>(array.data<char>()); }
  std::size_t bytes() const override { return array.nbytes(); }
  mx::array array;
};

// Metal through MLX: its allocator, its run-time compiler, the command encoder of one stream.
class MlxGpu : public Gpu {
 public:
  explicit MlxGpu(mx::Stream stream) : stream_(stream) {}

  std::unique_ptr<Memory> allocate(std::size_t bytes) override {
    const auto words = static_cast<int>((bytes + 3) / 4);
    return std::make_unique<ArrayMemory>(mx::array(
        mx::allocator::malloc(static_cast<std::size_t>(words) * 4), mx::Shape{words}, mx::uint32));
  }
  void retire(std::unique_ptr<Memory> memory) override {
    mx::metal::get_command_encoder(stream_).add_temporary(static_cast<ArrayMemory&>(*memory).array);
  }
  void dispatch(const Dispatch& d) override;
  // Compiles the kernel. Throws what Metal's compiler says.
  MTL::ComputePipelineState* pipeline(const Kernel& kernel);

 private:
  mx::Stream stream_;
  std::map<std::string, MTL::ComputePipelineState*> pipelines_;  // MLX owns them
};

std::string source_of(const Kernel& kernel) {
  std::string text;
  for (const auto& [macro, value] : kernel.macros) text += "#define " + macro + " " + value + "\n";
  text += kernel_source("common");
  text += kernel_source("params");
  return text + std::string(kernel_source(kernel.file));
}

MTL::ComputePipelineState* MlxGpu::pipeline(const Kernel& kernel) {
  const std::string name = kernel.library();
  MTL::ComputePipelineState*& found = pipelines_[name + " " + kernel.function];
  if (found == nullptr) {
    mx::metal::Device& device = mx::metal::device(stream_.device);
    // MLX compiles in safe math mode unless told otherwise.
    MTL::Library* library = device.get_library(name, [&] { return source_of(kernel); });
    found = device.get_kernel(kernel.function, library);
  }
  return found;
}

void MlxGpu::dispatch(const Dispatch& d) {
  mx::metal::CommandEncoder& encoder = mx::metal::get_command_encoder(stream_);
  // MLX's encoder runs dispatches side by side unless told otherwise. Ours depend on one another
  // almost always, so the barrier is explicit and not left to MLX's tracking of buffers; that
  // tracking orders whole encoders, for which written arrays have to be registered as outputs.
  encoder.barrier();
  encoder.set_compute_pipeline_state(pipeline(d.kernel));
  encoder.set_bytes(static_cast<const std::uint8_t*>(d.params), static_cast<int>(d.param_bytes), 0);
  int index = 1;
  for (const Argument& a : d.arguments) {
    mx::array& array = static_cast<ArrayMemory*>(a.memory)->array;
    const auto offset = static_cast<std::int64_t>(a.offset);
    if (a.written) {
      encoder.set_output_array(array, index++, offset);
    } else {
      encoder.set_input_array(array, index++, offset);
    }
  }
  encoder.dispatch_threadgroups(
      MTL::Size(static_cast<NS::UInteger>(d.grid.x), static_cast<NS::UInteger>(d.grid.y), 1),
      MTL::Size(static_cast<NS::UInteger>(d.threads), 1, 1));
}

class MetalBackend : public Backend {
 public:
  explicit MetalBackend(Plan& plan);
  ~MetalBackend() override { mx::synchronize(); }

  const char* name() const override { return state_.wide_inputs ? "metal fp32" : "metal"; }
  bool supports(const Record& record) const override { return has_kernel(record, plan_); }
  bool keys_by_dim() const override { return true; }
  bool wants_self_check() const override { return true; }
  void load(MatrixId id) override { state_.load(id, pair_[id], packers_); }
  void read_rows(MatrixId id, int row, int count, float* values) const override;
  void run(std::size_t begin, std::size_t end, std::shared_ptr<const core::Batch> batch,
           KvPool& pool, StepArrays& arrays) override;

  // Encodes the segment: the outputs have memory, nothing has run yet.
  void execute(const Segment& segment, const core::Batch& batch,
               const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs);

 private:
  Plan& plan_;
  MlxGpu gpu_;
  ThreadPool packers_;
  StepState state_;
  std::vector<bool> pair_;  // matrix feeds a gated unit
};

// One segment of a plan as a single MLX graph node.
class MetalSegment : public mx::Primitive {
 public:
  MetalSegment(mx::Stream stream, MetalBackend& backend, Segment segment,
               std::shared_ptr<const core::Batch> batch)
      : Primitive(stream),
        backend_(backend),
        segment_(std::move(segment)),
        batch_(std::move(batch)) {}

  const char* name() const override { return "BodegaMetalSegment"; }
  void eval_cpu(const std::vector<mx::array>&, std::vector<mx::array>&) override {
    throw std::logic_error("a Metal segment was put on a CPU stream");
  }
  void eval_gpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    backend_.execute(segment_, *batch_, inputs, outputs);
  }

 private:
  MetalBackend& backend_;
  Segment segment_;
  std::shared_ptr<const core::Batch> batch_;
};

// BODEGA_METAL_INPUTS=fp16 (default) or fp32.
bool wide_inputs() {
  const std::string type = env_string("BODEGA_METAL_INPUTS").value_or("fp16");
  if (type == "fp16" || type == "fp32") return type == "fp32";
  throw Error(ErrorKind::kConfig,
              "BODEGA_METAL_INPUTS is \"" + type + "\"; it has to be fp16 or fp32.");
}

MetalBackend::MetalBackend(Plan& plan)
    : plan_(plan),
      gpu_(mx::default_stream(mx::Device::gpu)),
      packers_(cpu_count()),
      state_(gpu_, plan, wide_inputs()),
      pair_(plan.matrices.size(), false) {
  for (const Record& record : plan.records) {
    const auto* r = std::get_if<QuantLinear>(&record);
    if (r == nullptr) continue;
    if (r->epilogue == Epilogue::kSwiGlu || r->epilogue == Epilogue::kGeGlu)
      pair_[r->weight] = true;
  }
}

void MetalBackend::read_rows(MatrixId id, int row, int count, float* values) const {
  const LoadedMatrix& w = state_.matrix(id);
  for (int i = 0; i < count; ++i) {
    read_packed_row(w.layout, w.memory->data(), row + i,
                    values + static_cast<std::size_t>(i) * w.layout.cols);
  }
}

void MetalBackend::run(std::size_t begin, std::size_t end, std::shared_ptr<const core::Batch> batch,
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
    // A new array even where the product would be itself: the segment writes its inputs in place.
    inputs.push_back(arrays.slots[slot]
                         ? mx::multiply(mx::contiguous(*arrays.slots[slot]), mx::array(1.0F))
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
  auto primitive = std::make_shared<MetalSegment>(mx::default_stream(mx::Device::gpu), *this, s,
                                                  std::move(batch));
  std::vector<mx::array> outputs = mx::array::make_arrays(shapes, types, primitive, inputs);
  std::size_t next = 0;
  for (mx::array& slab : pool.slabs()) slab = outputs[next++];
  for (SlotId slot : s.outputs) arrays.slots[slot] = outputs[next++];
  if (s.logits) arrays.logits = outputs[next];
}

void MetalBackend::execute(const Segment& segment, const core::Batch& batch,
                           const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) {
  const std::size_t slabs = inputs.size() - segment.inputs.size();
  std::vector<std::unique_ptr<ArrayMemory>> held;
  auto hold = [&](const mx::array& array) {
    held.push_back(std::make_unique<ArrayMemory>(array));
    return held.back().get();
  };
  std::vector<Memory*> slab_memory;
  for (std::size_t i = 0; i < slabs; ++i) {
    outputs[i].copy_shared_buffer(inputs[i]);
    slab_memory.push_back(hold(outputs[i]));
  }
  std::vector<Memory*> slots(plan_.slots.size(), nullptr);
  for (std::size_t i = 0; i < segment.inputs.size(); ++i) {
    slots[segment.inputs[i]] = hold(inputs[slabs + i]);
  }
  for (std::size_t i = 0; i < segment.outputs.size(); ++i) {
    mx::array& out = outputs[slabs + i];
    const auto at = std::find(segment.inputs.begin(), segment.inputs.end(), segment.outputs[i]);
    if (at != segment.inputs.end()) {
      out.copy_shared_buffer(inputs[slabs + (at - segment.inputs.begin())]);
    } else {
      out.set_data(mx::allocator::malloc(out.nbytes()));
    }
    slots[segment.outputs[i]] = hold(out);
  }
  Memory* logits = nullptr;
  if (segment.logits) {
    outputs.back().set_data(mx::allocator::malloc(outputs.back().nbytes()));
    logits = hold(outputs.back());
  }
  state_.bind(batch, segment.begin, segment.end, std::move(slots), std::move(slab_memory), logits);
  for (std::size_t i = segment.begin; i < segment.end; ++i) run_record(state_, plan_.records[i]);
}

}  // namespace
}  // namespace metal

std::unique_ptr<Backend> make_metal_backend(Plan& plan) {
  if (!mlx::core::metal::is_available()) return nullptr;
  return std::make_unique<metal::MetalBackend>(plan);
}

}  // namespace bodega::ops
