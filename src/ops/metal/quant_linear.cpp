#include "ops/metal/step.h"

namespace bodega::ops::metal {
namespace {

constexpr int kThreads = 256;
constexpr int kPreparingTiles = 1;

// Products of inputs with small integers are exact, sums are fp32.
Kernel linear_kernel(const StepState& s, const PackedLayout& layout, const char* function,
                     int row_tiles, LinearEpilogue epilogue) {
  return {"quant_linear",
          function,
          {{"BODEGA_BITS", std::to_string(layout.bits)},
           {"BODEGA_CODES", std::to_string(layout.codes)},
           {"BODEGA_GROUP", std::to_string(layout.group_size)},
           {"BODEGA_SCALE", std::to_string(layout.scale_kind)},
           {"BODEGA_ROW_TILES", std::to_string(row_tiles)},
           {"BODEGA_INPUT", s.wide_inputs ? "float" : "half"},
           {"BODEGA_INPUT2", s.wide_inputs ? "float2" : "half2"},
           {"BODEGA_EPILOGUE", std::to_string(static_cast<int>(epilogue))}}};
}

int row_tiles_of(int rows) {
  if (rows <= 8) return 1;
  return rows <= 16 ? 2 : 4;
}

LinearEpilogue epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kStore:
      return LinearEpilogue::kStore;
    case Epilogue::kResidual:
      return LinearEpilogue::kResidual;
    case Epilogue::kSwiGlu:
      return LinearEpilogue::kSwiGlu;
    case Epilogue::kGeGlu:
      return LinearEpilogue::kGeGlu;
  }
  return LinearEpilogue::kStore;
}

}  // namespace

void prepare_rows(StepState& s, const PrepareRows& rows, const LoadedMatrix& w) {
  const std::optional<Norm>& norm = rows.norm;
  const int interleave = interleave_of(rows.count);
  const PrepareParams p{rows.count,
                        w.layout.cols,
                        interleave,
                        rows.index >= 0 ? 1 : 0,
                        norm ? 1 : 0,
                        norm ? norm->eps : 0.0F,
                        norm ? norm->weight_offset : 0.0F};
  const std::size_t index = rows.index >= 0 ? static_cast<std::size_t>(rows.index) : 0;
  const Kernel kernel =
      linear_kernel(s, w.layout, "prepare_rows", kPreparingTiles, LinearEpilogue::kStore);
  const int padded = (rows.count + interleave - 1) / interleave * interleave;
  s.gpu.dispatch(make_dispatch(kernel, p,
                               {{rows.in},
                                {s.tables.get(), index},
                                {s.vector(norm ? norm->weight : -1)},
                                {s.prepared.get(), 0, true},
                                {s.sums.get(), 0, true}},
                               {padded, 1}, kThreads));
}

void multiply(StepState& s, const LoadedMatrix& w, int rows, const Product& product) {
  const LinearParams p{rows,
                       w.layout.cols,
                       interleave_of(rows),
                       w.layout.pair ? w.layout.rows / 2 : w.layout.rows,
                       product.out_stride,
                       product.out_column,
                       product.bias ? 1 : 0,
                       product.scale,
                       product.soft_cap};
  const int row_tiles = row_tiles_of(rows);
  const Kernel kernel = linear_kernel(s, w.layout, "quant_linear", row_tiles, product.epilogue);
  const int row_blocks = (rows + 8 * row_tiles - 1) / (8 * row_tiles);
  s.gpu.dispatch(make_dispatch(kernel, p,
                               {{w.memory.get()},
                                {s.prepared.get()},
                                {s.sums.get()},
                                {s.vector(product.bias.value_or(-1))},
                                {product.out, 0, true}},
                               {w.layout.blocks(), row_blocks}, kThreads));
}

void run_quant_linear(StepState& s, const QuantLinear& r) {
  const LoadedMatrix& w = s.matrix(r.weight);
  prepare_rows(s, {s.slots[r.in], r.norm, -1, s.rows}, w);
  multiply(
      s, w, s.rows,
      {epilogue_of(r.epilogue), r.bias, s.slots[r.out], s.plan.slots[r.out].cols, r.out_column});
}

}  // namespace bodega::ops::metal
