#include <vector>

#include "ops/reference/reference.h"

namespace bodega::ops::reference {
namespace {

namespace mx = mlx::core;

std::vector<int> row_positions(const core::Batch& batch) {
  std::vector<int> positions(static_cast<std::size_t>(batch.rows()));
  for (const core::SequenceSlice& s : batch.sequences) {
    for (int i = 0; i < s.row_count; ++i) positions[s.row_begin + i] = s.position + i;
  }
  return positions;
}

// x [T, heads, head_dim] turned by the angles [T, 1, rotary_dim / 2]
mx::array rotate(const mx::array& x, const mx::array& angles, const RopeAndCacheWrite& r) {
  const int half = r.rotary_dim / 2;
  const int rows = x.shape(0);
  const int heads = x.shape(1);
  const mx::array turned = mx::slice(x, {0, 0, 0}, {rows, heads, r.rotary_dim});
  const mx::array scale(r.rotary_scale);
  const mx::array cos = mx::multiply(mx::cos(angles), scale);
  const mx::array sin = mx::multiply(mx::sin(angles), scale);
  const mx::Shape pairs =
      r.interleaved ? mx::Shape{rows, heads, half, 2} : mx::Shape{rows, heads, 2, half};
  const int axis = r.interleaved ? 3 : 2;
  const std::vector<mx::array> ab = mx::split(mx::reshape(turned, pairs), 2, axis);
  const mx::array a = mx::squeeze(ab[0], axis);
  const mx::array b = mx::squeeze(ab[1], axis);
  const mx::array first = mx::subtract(mx::multiply(a, cos), mx::multiply(b, sin));
  const mx::array second = mx::add(mx::multiply(b, cos), mx::multiply(a, sin));
  mx::array out = mx::reshape(mx::stack({first, second}, axis), {rows, heads, r.rotary_dim});
  if (r.rotary_dim == r.shape.head_dim) return out;
  return mx::concatenate({out, mx::slice(x, {0, 0, r.rotary_dim}, {rows, heads, r.shape.head_dim})},
                         2);
}

// Writes k or v [T, kv_heads, head_dim] of the rows that live in `slab`.
void write(const mx::array& values, int kv, int slab, const RopeAndCacheWrite& r,
           const Context& c) {
  std::vector<int> rows;
  std::vector<int> blocks;
  std::vector<int> slots;
  for (const core::SequenceSlice& s : c.batch.sequences) {
    for (int i = 0; i < s.row_count; ++i) {
      const int position = s.position + i;
      const core::BlockRef ref = c.batch.blocks[s.block_begin + position / kBlockTokens];
      if (ref.slab != slab) continue;
      rows.push_back(s.row_begin + i);
      blocks.push_back(ref.offset);
      slots.push_back(position % kBlockTokens);
    }
  }
  if (rows.empty()) return;
  const int n = static_cast<int>(rows.size());
  const mx::Shape shape{n};
  auto index = [&](const std::vector<int>& v) { return mx::array(v.data(), shape, mx::int32); };
  const mx::array chosen = mx::astype(mx::take(values, index(rows), 0), mx::float16);
  mx::array& pool = c.pool.slabs()[slab];
  if (kv == 0 && c.pool.layout().keys_by_dim) {
    // The same memory seen as [blocks, layers, 2, kv_heads, head_dim, kBlockTokens].
    const mx::Shape shape_by_token = pool.shape();
    mx::Shape shape_by_dim = shape_by_token;
    std::swap(shape_by_dim[4], shape_by_dim[5]);
    const mx::array by_dim = mx::scatter(
        mx::reshape(pool, shape_by_dim),
        {index(blocks), mx::full(shape, r.kv.layer, mx::int32), mx::full(shape, kv, mx::int32),
         index(slots)},
        mx::reshape(chosen, {n, 1, 1, 1, r.shape.kv_heads, r.shape.head_dim, 1}), {0, 1, 2, 5});
    pool = mx::reshape(by_dim, shape_by_token);
    return;
  }
  const mx::array updates =
      mx::reshape(chosen, {n, 1, 1, 1, r.shape.kv_heads, 1, r.shape.head_dim});
  pool = mx::scatter(pool,
                     {index(blocks), mx::full(shape, r.kv.layer, mx::int32),
                      mx::full(shape, kv, mx::int32), index(slots)},
                     updates, {0, 1, 2, 4});
}

}  // namespace

void rope_and_cache_write(const RopeAndCacheWrite& r, const Context& c) {
  const int rows = c.batch.rows();
  const AttentionShape& s = r.shape;
  const mx::array qkv =
      mx::reshape(*c.arrays.slots[r.qkv], {rows, s.heads + 2 * s.kv_heads, s.head_dim});
  mx::array q = mx::slice(qkv, {0, 0, 0}, {rows, s.heads, s.head_dim});
  mx::array k = mx::slice(qkv, {0, s.heads, 0}, {rows, s.heads + s.kv_heads, s.head_dim});
  const mx::array v =
      mx::slice(qkv, {0, s.heads + s.kv_heads, 0}, {rows, s.heads + 2 * s.kv_heads, s.head_dim});
  if (r.q_norm) q = rms_norm(q, *r.q_norm, c);
  if (r.k_norm) k = rms_norm(k, *r.k_norm, c);
  if (r.rotary_dim > 0) {
    const std::vector<int> at = row_positions(c.batch);
    const mx::array positions(at.data(), mx::Shape{rows, 1, 1}, mx::int32);
    const mx::array angles =
        mx::multiply(mx::astype(positions, mx::float32), c.weights.vector(r.inv_freq));
    q = rotate(q, angles, r);
    k = rotate(k, angles, r);
  }
  for (int slab = 0; slab < static_cast<int>(c.pool.slabs().size()); ++slab) {
    write(k, 0, slab, r, c);
    write(v, 1, slab, r, c);
  }
  c.arrays.slots[r.qkv] = mx::reshape(mx::concatenate({q, k, v}, 1), {rows, -1});
}

}  // namespace bodega::ops::reference
