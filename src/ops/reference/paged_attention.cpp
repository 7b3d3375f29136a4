#include <limits>
#include <map>
#include <vector>

#include "ops/reference/reference.h"

namespace bodega::ops::reference {
namespace {

namespace mx = mlx::core;

// Keys or values of one sequence, [kv_heads, tokens, head_dim] in fp32, gathered block by block.
mx::array gather(const core::SequenceSlice& s, int tokens, int kv, const PagedAttention& r,
                 const Context& c) {
  const int blocks = (tokens + kBlockTokens - 1) / kBlockTokens;
  std::map<int, std::vector<int>> by_slab;  // slab -> offsets
  std::vector<std::pair<int, int>> place;   // block -> (slab, index among that slab's)
  for (int b = 0; b < blocks; ++b) {
    const core::BlockRef ref = c.batch.blocks[s.block_begin + b];
    place.emplace_back(ref.slab, static_cast<int>(by_slab[ref.slab].size()));
    by_slab[ref.slab].push_back(ref.offset);
  }
  std::vector<mx::array> parts;
  std::map<int, int> start;
  int taken = 0;
  for (const auto& [slab, offsets] : by_slab) {
    const int n = static_cast<int>(offsets.size());
    const mx::array& pool = c.pool.slabs()[slab];
    const mx::array index(offsets.data(), mx::Shape{n}, mx::int32);
    const mx::array layer = mx::full({n}, r.kv.layer, mx::int32);
    const mx::array which = mx::full({n}, kv, mx::int32);
    const mx::array found = mx::gather(pool, {index, layer, which}, {0, 1, 2},
                                       {1, 1, 1, r.shape.kv_heads, kBlockTokens, r.shape.head_dim});
    const mx::Shape by_token{n, r.shape.kv_heads, kBlockTokens, r.shape.head_dim};
    const mx::Shape by_dim{n, r.shape.kv_heads, r.shape.head_dim, kBlockTokens};
    parts.push_back(kv == 0 && c.pool.layout().keys_by_dim
                        ? mx::swapaxes(mx::reshape(found, by_dim), 2, 3)
                        : mx::reshape(found, by_token));
    start[slab] = taken;
    taken += n;
  }
  std::vector<int> order;
  for (const auto& [slab, index] : place) order.push_back(start[slab] + index);
  const mx::array all =
      mx::take(mx::concatenate(parts, 0), mx::array(order.data(), mx::Shape{blocks}, mx::int32), 0);
  const mx::array heads_first =
      mx::reshape(mx::transpose(all, {1, 0, 2, 3}),
                  {r.shape.kv_heads, blocks * kBlockTokens, r.shape.head_dim});
  const mx::array used =
      mx::slice(heads_first, {0, 0, 0}, {r.shape.kv_heads, tokens, r.shape.head_dim});
  return mx::astype(used, mx::float32);
}

mx::array visible(const core::SequenceSlice& s, int tokens, int window) {
  const mx::array rows =
      mx::reshape(mx::add(mx::arange(s.row_count), mx::array(s.position)), {s.row_count, 1});
  const mx::array keys = mx::reshape(mx::arange(tokens), {1, tokens});
  mx::array mask = mx::less_equal(keys, rows);
  if (window > 0) {
    mask = mx::logical_and(mask, mx::greater(keys, mx::subtract(rows, mx::array(window))));
  }
  return mask;
}

mx::array attend(const core::SequenceSlice& s, const PagedAttention& r, const Context& c) {
  const AttentionShape& shape = r.shape;
  const int group = shape.heads / shape.kv_heads;
  const int tokens = s.position + s.row_count;
  const mx::array k = gather(s, tokens, 0, r, c);
  const mx::array v = gather(s, tokens, 1, r, c);
  const mx::array rows = mx::slice(*c.arrays.slots[r.qkv], {s.row_begin, 0},
                                   {s.row_begin + s.row_count, shape.heads * shape.head_dim});
  // [kv_heads, group, rows, head_dim]
  const mx::array q = mx::transpose(
      mx::reshape(rows, {s.row_count, shape.kv_heads, group, shape.head_dim}), {1, 2, 0, 3});
  mx::array scores = mx::multiply(mx::matmul(q, mx::expand_dims(mx::transpose(k, {0, 2, 1}), 1)),
                                  mx::array(r.scale));
  if (r.soft_cap > 0.0F) {
    const mx::array cap(r.soft_cap);
    scores = mx::multiply(cap, mx::tanh(mx::divide(scores, cap)));
  }
  scores = mx::where(visible(s, tokens, r.window), scores,
                     mx::array(-std::numeric_limits<float>::infinity()));
  if (r.sinks) {
    const mx::array sink =
        mx::broadcast_to(mx::reshape(c.weights.vector(*r.sinks), {shape.kv_heads, group, 1, 1}),
                         {shape.kv_heads, group, s.row_count, 1});
    scores = mx::concatenate({scores, sink}, -1);
  }
  mx::array weights = mx::softmax(scores, -1, true);
  if (r.sinks) {
    weights = mx::slice(weights, {0, 0, 0, 0}, {shape.kv_heads, group, s.row_count, tokens});
  }
  const mx::array out = mx::matmul(weights, mx::expand_dims(v, 1));
  return mx::reshape(mx::transpose(out, {2, 0, 1, 3}), {s.row_count, shape.heads * shape.head_dim});
}

}  // namespace

void paged_attention(const PagedAttention& record, const Context& c) {
  std::vector<mx::array> parts;
  for (const core::SequenceSlice& s : c.batch.sequences) parts.push_back(attend(s, record, c));
  c.arrays.slots[record.out] = mx::concatenate(parts, 0);
}

}  // namespace bodega::ops::reference
