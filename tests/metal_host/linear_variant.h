// One compiled variant of prepare_rows and quant_linear. Included once a variant, with the kernels'
// macros and BODEGA_VARIANT (a name) set; undefines them again. No include guard on purpose.

namespace metal_host::msl::BODEGA_VARIANT {

#include "common.metal.inc"
#include "quant_linear.metal.inc"

struct Kernels {
  using Input = BODEGA_INPUT;
  static constexpr int kBits = BODEGA_BITS;
  static constexpr int kCodes = BODEGA_CODES;
  static constexpr int kGroup = BODEGA_GROUP;
  static constexpr int kScale = BODEGA_SCALE;
  static constexpr int kRowTiles = BODEGA_ROW_TILES;
  static constexpr int kEpilogue = BODEGA_EPILOGUE;

  static void prepare(const PrepareParams& p, const LinearBuffers<Input>& b) {
    const unsigned rows = (p.rows + p.interleave - 1) / p.interleave * p.interleave;
    launch({rows, 1, 1}, 256, {b.prepared->region(), b.sums->region()},
           [&](const ThreadPosition& at) {
             prepare_rows(p, b.x->in(), b.index->in(), b.norm->in(), b.prepared->out(),
                          b.sums->out(), at.group, at.thread, at.simd, at.lane);
           });
  }
  static void multiply(const LinearParams& p, unsigned blocks, const LinearBuffers<Input>& b) {
    const unsigned rows = 8 * BODEGA_ROW_TILES;
    launch({blocks, (p.rows + rows - 1) / rows, 1}, 256, {b.out->region()},
           [&](const ThreadPosition& at) {
             quant_linear(p, b.weights->in(), b.prepared->in(), b.sums->in(), b.bias->in(),
                          b.out->out(), at.group, at.thread, at.simd, at.lane);
           });
  }
};

}  // namespace metal_host::msl::BODEGA_VARIANT

#undef BODEGA_VARIANT
#undef BODEGA_BITS
#undef BODEGA_CODES
#undef BODEGA_GROUP
#undef BODEGA_SCALE
#undef BODEGA_ROW_TILES
#undef BODEGA_INPUT
#undef BODEGA_INPUT2
#undef BODEGA_EPILOGUE
