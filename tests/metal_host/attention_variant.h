// The attention and rotary kernels for one head size. Included once a size with BODEGA_HEAD_DIM and
// BODEGA_VARIANT set; undefines them again. No include guard on purpose.

namespace metal_host::msl::BODEGA_VARIANT {
namespace attention {
#include "common.metal.inc"
#include "paged_attention.metal.inc"
}  // namespace attention
namespace rope {
#include "common.metal.inc"
#include "rope_and_cache_write.metal.inc"
}  // namespace rope

struct Kernels {
  static constexpr int kHeadDim = BODEGA_HEAD_DIM;

  static void attend(const AttentionParams& p, AttentionBuffers& b) {
    const auto items = static_cast<unsigned>(b.items.values().size());
    const auto heads = static_cast<unsigned>(p.kv_heads);
    launch({items, heads, 1}, 256,
           {b.out.region(), b.partial_values.region(), b.partial_state.region()},
           [&](const ThreadPosition& at) {
             attention::paged_attention(p, b.qkv.in(), b.items.in(), b.blocks.in(), b.sinks.in(),
                                        b.slabs[0].in(), b.slabs[1].in(), b.slabs[2].in(),
                                        b.slabs[3].in(), b.out.out(), b.partial_values.out(),
                                        b.partial_state.out(), at.group, at.thread, at.simd,
                                        at.lane);
           });
    if (b.folds.values().empty()) return;
    const auto folds = static_cast<unsigned>(b.folds.values().size());
    launch({folds, static_cast<unsigned>(p.heads), 1}, 32, {b.out.region()},
           [&](const ThreadPosition& at) {
             attention::fold_splits(p, b.folds.in(), b.sinks.in(), b.partial_values.in(),
                                    b.partial_state.in(), b.out.out(), at.group, at.thread, at.simd,
                                    at.lane);
           });
  }

  static void turn(const RopeParams& p, unsigned rows, RopeBuffers& b) {
    const auto heads = static_cast<unsigned>(p.heads + 2 * p.kv_heads);
    launch({heads, rows, 1}, 32,
           {b.qkv.region(), b.slabs[0].region(), b.slabs[1].region(), b.slabs[2].region(),
            b.slabs[3].region()},
           [&](const ThreadPosition& at) {
             rope::rope_and_cache_write(p, b.qkv.out(), b.inv_freq.in(), b.q_norm.in(),
                                        b.k_norm.in(), b.places.in(), b.blocks.in(),
                                        b.slabs[0].out(), b.slabs[1].out(), b.slabs[2].out(),
                                        b.slabs[3].out(), at.group, at.thread, at.simd, at.lane);
           });
  }
};

}  // namespace metal_host::msl::BODEGA_VARIANT

#undef BODEGA_VARIANT
#undef BODEGA_HEAD_DIM
