// The embed kernel for one format. Included once a format, inside a namespace, with its macros and
// BODEGA_VARIANT set; undefines them again. No include guard on purpose.

namespace BODEGA_VARIANT {

#include "common.metal.inc"
#include "embed.metal.inc"

struct Kernels {
  static constexpr int kBits = BODEGA_BITS;
  static constexpr int kCodes = BODEGA_CODES;
  static constexpr int kGroup = BODEGA_GROUP;
  static constexpr int kScale = BODEGA_SCALE;

  static void run(const EmbedParams& p, const Buffer<uchar>& table, const Buffer<int>& tokens,
                  Buffer<float>& out) {
    const auto rows = static_cast<unsigned>(tokens.values().size());
    launch({rows, 1, 1}, 256, {out.region()}, [&](const ThreadPosition& at) {
      embed(p, table.in(), tokens.in(), out.out(), at.group, at.thread, at.simd, at.lane);
    });
  }
};

}  // namespace BODEGA_VARIANT

#undef BODEGA_VARIANT
#undef BODEGA_BITS
#undef BODEGA_CODES
#undef BODEGA_GROUP
#undef BODEGA_SCALE
