#include "ops/metal/step.h"

namespace bodega::ops::metal {
namespace {

Kernel attention_kernel(const AttentionShape& shape, const char* function) {
  return {"paged_attention", function, {{"BODEGA_HEAD_DIM", std::to_string(shape.head_dim)}}};
}

}  // namespace

void run_paged_attention(StepState& s, const PagedAttention& r) {
  const KvLayout& layout = s.plan.kv_groups[r.kv.group];
  const AttentionTable& table = s.attention_table(r);
  const AttentionParams p{r.shape.heads,
                          r.shape.kv_heads,
                          s.plan.slots[r.qkv].cols,
                          s.plan.slots[r.out].cols,
                          r.scale,
                          r.soft_cap,
                          r.window,
                          r.sinks ? 1 : 0,
                          static_cast<int>(layout.block_elements()),
                          static_cast<int>(layout.head_offset(r.kv.layer, 0, 0)),
                          static_cast<int>(layout.head_offset(r.kv.layer, 1, 0))};
  Memory* sinks = s.vector(r.sinks.value_or(-1));
  s.gpu.dispatch(make_dispatch(attention_kernel(r.shape, "paged_attention"), p,
                               {{s.slots[r.qkv]},
                                {s.tables.get(), table.items},
                                {s.tables.get(), s.blocks},
                                {sinks},
                                {s.slabs[0]},
                                {s.slabs[1]},
                                {s.slabs[2]},
                                {s.slabs[3]},
                                {s.slots[r.out], 0, true},
                                {s.partial_values.get(), 0, true},
                                {s.partial_state.get(), 0, true}},
                               {table.item_count, r.shape.kv_heads}, 256));
  if (table.fold_count == 0) return;
  s.gpu.dispatch(make_dispatch(attention_kernel(r.shape, "fold_splits"), p,
                               {{s.tables.get(), table.folds},
                                {sinks},
                                {s.partial_values.get()},
                                {s.partial_state.get()},
                                {s.slots[r.out], 0, true}},
                               {table.fold_count, r.shape.heads}, 32));
}

}  // namespace bodega::ops::metal
