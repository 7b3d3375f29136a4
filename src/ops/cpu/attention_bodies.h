#pragma once

#include <cstdint>

#include "ops/cpu/linear_bodies.h"

// Attention over a paged cache. A row walks its keys in tiles of kAttentionTile at absolute
// boundaries, so its sums do not depend on the other rows or on how the prompt was cut.
namespace bodega::ops::cpu {
namespace {

constexpr float kMinusInfinity = -3.0e38F;

// Keys or values of `count` tokens from `begin` on, in fp32: out is [count, head_dim].
template <class V>
void load_tile(const KvView& kv, std::int64_t head_offset, int begin, int count, float* out) {
  constexpr int kBlock = core::kBlockTokens;
  for (int t = 0; t < count; ++t) {
    const core::BlockRef ref = kv.blocks[(begin + t) / kBlock];
    const std::uint16_t* in = kv.slabs[ref.slab] + ref.offset * kv.block_elements + head_offset +
                              static_cast<std::int64_t>((begin + t) % kBlock) * kv.head_dim;
    for (int d = 0; d < kv.head_dim; d += V::kWidth) {
      V::store(out + t * kv.head_dim + d, V::load_f16(in + d));
    }
  }
}

template <class V>
void score_tile(const float* q, const float* keys, int count, int head_dim, float* scores) {
  using F = typename V::F;
  int t = 0;
  for (; t + 4 <= count; t += 4) {
    F acc[4];
    for (int j = 0; j < 4; ++j) acc[j] = V::set1(0.0F);
    for (int d = 0; d < head_dim; d += V::kWidth) {
      const F qv = V::load(q + d);
      for (int j = 0; j < 4; ++j) {
        acc[j] = V::fma(qv, V::load(keys + (t + j) * head_dim + d), acc[j]);
      }
    }
    for (int j = 0; j < 4; ++j) scores[t + j] = V::sum(acc[j]);
  }
  for (; t < count; ++t) {
    F acc = V::set1(0.0F);
    for (int d = 0; d < head_dim; d += V::kWidth) {
      acc = V::fma(V::load(q + d), V::load(keys + t * head_dim + d), acc);
    }
    scores[t] = V::sum(acc);
  }
}

// scores -> exponentials relative to the new maximum, which is returned; masked ones become zero.
template <class V>
float soften(float* scores, int first, int last, float scale, float cap, float old_max,
             float* sum) {
  using F = typename V::F;
  F top = V::set1(old_max);
  for (int t = 0; t < kAttentionTile; t += V::kWidth) {
    F s = V::mul(V::load(scores + t), V::set1(scale));
    if (cap > 0.0F) s = V::mul(V::set1(cap), tanh_vec<V>(V::div(s, V::set1(cap))));
    V::store(scores + t, s);
  }
  for (int t = 0; t < first; ++t) scores[t] = kMinusInfinity;
  for (int t = last; t < kAttentionTile; ++t) scores[t] = kMinusInfinity;
  for (int t = 0; t < kAttentionTile; t += V::kWidth) top = V::max(top, V::load(scores + t));
  const float new_max = V::max_lane(top);
  F total = V::set1(0.0F);
  for (int t = 0; t < kAttentionTile; t += V::kWidth) {
    const F e = exp_vec<V>(V::sub(V::load(scores + t), V::set1(new_max)));
    V::store(scores + t, e);
  }
  for (int t = 0; t < first; ++t) scores[t] = 0.0F;
  for (int t = last; t < kAttentionTile; ++t) scores[t] = 0.0F;
  for (int t = 0; t < kAttentionTile; t += V::kWidth) total = V::add(total, V::load(scores + t));
  *sum = V::sum(total);
  return new_max;
}

template <class V>
float exp_one(float x) {
  float lanes[V::kWidth];
  V::store(lanes, exp_vec<V>(V::set1(x)));
  return x < -87.0F ? 0.0F : lanes[0];
}

// values = values * correction + sum over t of weight[t] * v[t]
template <class V>
void gather_values(const float* weights, const float* v, int first, int last, int head_dim,
                   float correction, float* values) {
  using F = typename V::F;
  int d = 0;
  for (; d + 4 * V::kWidth <= head_dim; d += 4 * V::kWidth) {
    F acc[4];
    for (int j = 0; j < 4; ++j) {
      acc[j] = V::mul(V::load(values + d + j * V::kWidth), V::set1(correction));
    }
    for (int t = first; t < last; ++t) {
      const F weight = V::set1(weights[t]);
      for (int j = 0; j < 4; ++j) {
        acc[j] = V::fma(weight, V::load(v + t * head_dim + d + j * V::kWidth), acc[j]);
      }
    }
    for (int j = 0; j < 4; ++j) V::store(values + d + j * V::kWidth, acc[j]);
  }
  for (; d < head_dim; d += V::kWidth) {
    F acc = V::mul(V::load(values + d), V::set1(correction));
    for (int t = first; t < last; ++t) {
      acc = V::fma(V::set1(weights[t]), V::load(v + t * head_dim + d), acc);
    }
    V::store(values + d, acc);
  }
}

struct TileRange {
  int first;
  int last;
};

// Keys of the tile at `begin` that the row may see, relative to the tile.
inline TileRange visible(const AttentionRows& rows, int r, int begin) {
  const int position = rows.position[r];
  int first = 0;
  if (rows.window > 0 && position - rows.window + 1 > begin) {
    first = position - rows.window + 1 - begin;
  }
  int last = position + 1 - begin;
  if (last > kAttentionTile) last = kAttentionTile;
  return {first, last};
}

struct AttentionScratch {
  float scores[kAttentionRows][kAttentionTile];
  float correction[kAttentionRows];
  alignas(64) float tile[kAttentionTile * kMaxHeadDim];
};

template <class V>
void attend_tile(const KvView& kv, const AttentionRows& rows, int begin, AttentionState* state,
                 AttentionScratch& s) {
  TileRange range[kAttentionRows];
  int count = 0;
  for (int r = 0; r < rows.count; ++r) {
    range[r] = visible(rows, r, begin);
    if (range[r].first < range[r].last && range[r].last > count) count = range[r].last;
  }
  if (count <= 0) return;
  load_tile<V>(kv, kv.k_offset, begin, count, s.tile);
  for (int r = 0; r < rows.count; ++r) {
    if (range[r].first >= range[r].last) continue;
    for (int t = range[r].last; t < kAttentionTile; ++t) s.scores[r][t] = 0.0F;
    score_tile<V>(rows.q[r], s.tile, range[r].last, kv.head_dim, s.scores[r]);
    float sum;
    const float max = soften<V>(s.scores[r], range[r].first, range[r].last, rows.scale,
                                rows.soft_cap, state[r].max, &sum);
    s.correction[r] = exp_one<V>(state[r].max - max);
    state[r].sum = state[r].sum * s.correction[r] + sum;
    state[r].max = max;
  }
  load_tile<V>(kv, kv.v_offset, begin, count, s.tile);
  for (int r = 0; r < rows.count; ++r) {
    if (range[r].first >= range[r].last) continue;
    gather_values<V>(s.scores[r], s.tile, range[r].first, range[r].last, kv.head_dim,
                     s.correction[r], state[r].values);
  }
}

template <class V>
void attend(const KvView& kv, const AttentionRows& rows, int split, AttentionState* state,
            void* scratch) {
  auto& s = *static_cast<AttentionScratch*>(scratch);
  int last_position = 0;
  int first_visible = split * kAttentionSplit + kAttentionSplit;
  for (int r = 0; r < rows.count; ++r) {
    state[r].max = kMinusInfinity;
    state[r].sum = 0.0F;
    for (int d = 0; d < kv.head_dim; ++d) state[r].values[d] = 0.0F;
    if (rows.position[r] > last_position) last_position = rows.position[r];
    const int from = rows.window > 0 ? rows.position[r] - rows.window + 1 : 0;
    if (from < first_visible) first_visible = from;
  }
  int begin = split * kAttentionSplit;
  const int end = begin + kAttentionSplit;
  if (first_visible > begin) begin += (first_visible - begin) / kAttentionTile * kAttentionTile;
  for (; begin < end && begin <= last_position; begin += kAttentionTile) {
    attend_tile<V>(kv, rows, begin, state, s);
  }
}

template <class V>
void fold(AttentionState& into, const AttentionState& piece, int head_dim) {
  using F = typename V::F;
  if (piece.sum == 0.0F) return;
  const float max = into.max > piece.max ? into.max : piece.max;
  const float a = exp_one<V>(into.max - max);
  const float b = exp_one<V>(piece.max - max);
  into.sum = into.sum * a + piece.sum * b;
  into.max = max;
  for (int d = 0; d < head_dim; d += V::kWidth) {
    const F kept = V::mul(V::load(into.values + d), V::set1(a));
    V::store(into.values + d, V::fma(V::load(piece.values + d), V::set1(b), kept));
  }
}

template <class V>
void finish(AttentionState& state, const float* sink, int head_dim, float* out) {
  using F = typename V::F;
  float scale = 1.0F;
  float sum = state.sum;
  if (sink != nullptr) {
    const float max = *sink > state.max ? *sink : state.max;
    scale = exp_one<V>(state.max - max);
    sum = sum * scale + exp_one<V>(*sink - max);
  }
  const F factor = V::set1(scale / sum);
  for (int d = 0; d < head_dim; d += V::kWidth) {
    V::store(out + d, V::mul(V::load(state.values + d), factor));
  }
}

template <class V>
constexpr Kernels make_kernels(const char* name) {
  static_assert(sizeof(AttentionScratch) <= kScratchBytes && sizeof(Panel<V>) <= kScratchBytes);
  return {name,      V::kWidth, activations<V>, rms_norm<V>, quantize<V>,
          linear<V>, dense<V>,  glu<V>,         rotate<V>,   to_half<V>,
          attend<V>, fold<V>,   finish<V>,      argmax<V>,   soft_cap<V>};
}

}  // namespace
}  // namespace bodega::ops::cpu
