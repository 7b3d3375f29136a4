#include <algorithm>

#include "ops/cuda/step.h"

namespace bodega::ops::cuda {
namespace {

constexpr int kRowPadding = 128;
constexpr unsigned kPrepareThreads = 512;
constexpr int kApartRows = 256;  // above, one block runs all slices of its outputs

int up_to(int value, int step) { return (value + step - 1) / step * step; }

bool gated(int epilogue) { return epilogue == kLinearSwiGlu || epilogue == kLinearGeGlu; }

LinearEpilogue epilogue_of(Epilogue e) {
  switch (e) {
    case Epilogue::kStore:
      return kLinearStore;
    case Epilogue::kResidual:
      return kLinearResidual;
    case Epilogue::kSwiGlu:
      return kLinearSwiGlu;
    case Epilogue::kGeGlu:
      return kLinearGeGlu;
  }
  return kLinearStore;
}

void multiply_narrow(StepState& s, const LinearKernels& k, const LinearArgs& a) {
  s.launch(a.tokens > 8 ? k.narrow16 : k.narrow8, {static_cast<unsigned>(a.w.tiles / 2)},
           kSlices * 32, a);
}

void multiply_wide(StepState& s, const LinearKernels& k, LinearArgs a) {
  const int tokens = a.tokens <= 32 ? 32 : a.tokens <= 64 ? 64 : 128;
  const Kernel& kernel = tokens == 32 ? k.wide32 : tokens == 64 ? k.wide64 : k.wide128;
  const auto row_blocks = static_cast<unsigned>((a.w.tiles + 7) / 8);
  const auto token_blocks = static_cast<unsigned>((a.tokens + tokens - 1) / tokens);
  unsigned apart = 1;
  // Blocks that fill an H200 (132 multiprocessors), by measurement.
  const int sixths = tokens == 32 ? 36 : tokens == 64 ? 9 : 4;
  const auto wanted = static_cast<unsigned>(s.driver.multiprocessors() * sixths / 6);
  while (a.tokens <= kApartRows && apart < kSlices && row_blocks * token_blocks * apart < wanted) {
    apart *= 2;
  }
  if (apart > 1) {
    const std::size_t floats = static_cast<std::size_t>(kSlices) * a.tokens * a.w.tiles * 16;
    s.reserve(s.slice_partial, floats * sizeof(float));
    a.partial = s.slice_partial.as<float>();
  }
  s.launch(kernel, {token_blocks, row_blocks, apart}, tokens == 128 ? 256 : 128, a);
  if (apart > 1) {
    const int outputs = gated(a.epilogue) ? a.w.rows / 2 : a.w.rows;
    s.launch(k.reduce,
             {static_cast<unsigned>((outputs + 255) / 256), static_cast<unsigned>(a.tokens)}, 256,
             a);
  }
}

}  // namespace

void prepare_rows(StepState& s, SlotId slot, const std::optional<Norm>& norm, const PackedMatrix& w,
                  const int* row_list, int count) {
  const int padded = up_to(count, kRowPadding);
  const int stride = up_to(w.cols(), kUnitCols);
  s.sum_stride = padded;
  s.reserve(s.x, static_cast<std::size_t>(padded) * stride * 2);
  s.reserve(s.sums, static_cast<std::size_t>(stride / w.group()) * padded * sizeof(float));
  s.reserve(s.row_scale, static_cast<std::size_t>(padded) * sizeof(float));
  PrepareArgs a{};
  a.in = s.slots[slot].as<float>();
  a.rows = row_list;
  if (norm) {
    a.norm = s.vector(norm->weight);
    a.eps = norm->eps;
    a.norm_offset = norm->weight_offset;
  }
  a.cols = w.cols();
  a.in_stride = s.plan.slots[slot].cols;
  a.count = count;
  a.group = w.group();
  a.nibbles = w.bits() == 4 ? 1 : 0;
  a.x_stride = stride;
  a.sum_stride = s.sum_stride;
  a.x = s.x.as<unsigned short>();
  a.sums = s.sums.as<float>();
  a.row_scale = s.row_scale.as<float>();
  s.launch(s.prepare, {static_cast<unsigned>(count)}, kPrepareThreads, a);
}

void multiply(StepState& s, const PackedMatrix& w, LinearArgs a) {
  a.w = w.view();
  a.x = s.x.as<unsigned short>();
  a.sums = s.sums.as<float>();
  a.row_scale = s.row_scale.as<float>();
  a.x_stride = up_to(w.cols(), kUnitCols);
  a.sum_stride = s.sum_stride;
  const LinearKernels& k = s.kernels_of(w);
  if (a.tokens <= 16) {
    multiply_narrow(s, k, a);
  } else {
    multiply_wide(s, k, a);
  }
}

void run_quant_linear(StepState& s, const QuantLinear& r) {
  const PackedMatrix& w = s.matrix(r.weight);
  prepare_rows(s, r.in, r.norm, w, nullptr, s.rows);
  LinearArgs a{};
  a.bias = r.bias ? s.vector(*r.bias) : nullptr;
  a.out = s.slots[r.out].as<float>() + r.out_column;
  a.out_stride = s.plan.slots[r.out].cols;
  a.tokens = s.rows;
  a.epilogue = epilogue_of(r.epilogue);
  multiply(s, w, a);
}

}  // namespace bodega::ops::cuda
