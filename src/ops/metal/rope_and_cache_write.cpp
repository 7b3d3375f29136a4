#include "ops/metal/step.h"

namespace bodega::ops::metal {

void run_rope_and_cache_write(StepState& s, const RopeAndCacheWrite& r) {
  const KvLayout& layout = s.plan.kv_groups[r.kv.group];
  const Kernel kernel{"rope_and_cache_write",
                      "rope_and_cache_write",
                      {{"BODEGA_HEAD_DIM", std::to_string(r.shape.head_dim)}}};
  const RopeParams p{r.shape.heads,
                     r.shape.kv_heads,
                     r.rotary_dim / 2,
                     r.interleaved ? 1 : 0,
                     r.rotary_scale,
                     r.q_norm ? 1 : 0,
                     r.k_norm ? 1 : 0,
                     r.q_norm ? r.q_norm->eps : 0.0F,
                     r.k_norm ? r.k_norm->eps : 0.0F,
                     r.q_norm ? r.q_norm->weight_offset : 0.0F,
                     r.k_norm ? r.k_norm->weight_offset : 0.0F,
                     static_cast<int>(layout.block_elements()),
                     static_cast<int>(layout.head_offset(r.kv.layer, 0, 0)),
                     static_cast<int>(layout.head_offset(r.kv.layer, 1, 0))};
  s.gpu.dispatch(make_dispatch(kernel, p,
                               {{s.slots[r.qkv], 0, true},
                                {s.vector(r.rotary_dim > 0 ? r.inv_freq : -1)},
                                {s.vector(r.q_norm ? r.q_norm->weight : -1)},
                                {s.vector(r.k_norm ? r.k_norm->weight : -1)},
                                {s.tables.get(), s.places},
                                {s.tables.get(), s.blocks},
                                {s.slabs[0], 0, true},
                                {s.slabs[1], 0, true},
                                {s.slabs[2], 0, true},
                                {s.slabs[3], 0, true}},
                               {r.shape.heads + 2 * r.shape.kv_heads, s.rows}, 32));
}

}  // namespace bodega::ops::metal
