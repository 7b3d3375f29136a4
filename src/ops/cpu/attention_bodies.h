#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/cpu/linear_bodies.h"

// Attention over a paged cache. A row walks its keys in tiles of kAttentionTile at absolute
// boundaries, so its sums do not depend on the other rows or on how the prompt was cut.
namespace bodega::ops::cpu {
namespace {

constexpr float kMinusInfinity = -3.0e38F;

template <class V>
inline typename V::F load_element(const float* p) {
  return V::load(p);
}
template <class V>
inline typename V::F load_element(const std::uint16_t* p) {
  return V::load_f16(p);
}

inline constexpr int kTileBlocks = kAttentionTile / core::kBlockTokens;

// scores[m][0:kAttentionTile] = q[m] . key. A block of keys is [head_dim, kBlockTokens], so a lane
// is a key and every sum runs along d alone, whatever the number of rows.
template <class V, class T, int Rows>
void score_rows(const T* const* keys, int head_dim, const float* const* q,
                float (*scores)[kAttentionTile]) {
  using F = typename V::F;
  constexpr int kBlock = core::kBlockTokens;
  constexpr int kVectors = V::kAttentionVectors;
  for (int v = 0; v < kAttentionTile / V::kWidth; v += kVectors) {
    const T* from[kVectors];
    for (int j = 0; j < kVectors; ++j) {
      const int key = (v + j) * V::kWidth;
      from[j] = keys[key / kBlock] + key % kBlock;
    }
    F acc[Rows][kVectors];
    for (int m = 0; m < Rows; ++m) {
      for (int j = 0; j < kVectors; ++j) acc[m][j] = V::set1(0.0F);
    }
    for (int d = 0; d < head_dim; ++d) {
      F k[kVectors];
      for (int j = 0; j < kVectors; ++j) k[j] = load_element<V>(from[j] + d * kBlock);
      for (int m = 0; m < Rows; ++m) {
        const F x = V::set1(q[m][d]);
        for (int j = 0; j < kVectors; ++j) acc[m][j] = V::fma(k[j], x, acc[m][j]);
      }
    }
    for (int m = 0; m < Rows; ++m) {
      for (int j = 0; j < kVectors; ++j) V::store(scores[m] + (v + j) * V::kWidth, acc[m][j]);
    }
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

// values[m] += sum over t in [first, last) of weight[m][t] * v[t], in the order of t. A block of
// values is [kBlockTokens, head_dim].
template <class V, class T, int Rows, int Vectors>
void gather_columns(const T* const* blocks, const float (*weights)[kAttentionTile], int first,
                    int last, int head_dim, int d, const AttentionState* state) {
  using F = typename V::F;
  constexpr int kBlock = core::kBlockTokens;
  F acc[Rows][Vectors];
  for (int m = 0; m < Rows; ++m) {
    for (int j = 0; j < Vectors; ++j) acc[m][j] = V::load(state[m].values + d + j * V::kWidth);
  }
  for (int t = first; t < last; ++t) {
    const T* from = blocks[t / kBlock] + t % kBlock * head_dim + d;
    F v[Vectors];
    for (int j = 0; j < Vectors; ++j) v[j] = load_element<V>(from + j * V::kWidth);
    for (int m = 0; m < Rows; ++m) {
      const F weight = V::set1(weights[m][t]);
      for (int j = 0; j < Vectors; ++j) acc[m][j] = V::fma(weight, v[j], acc[m][j]);
    }
  }
  for (int m = 0; m < Rows; ++m) {
    for (int j = 0; j < Vectors; ++j) V::store(state[m].values + d + j * V::kWidth, acc[m][j]);
  }
}

template <class V, class T, int Rows>
void gather_rows(const T* const* blocks, const float (*weights)[kAttentionTile], int first,
                 int last, int head_dim, const AttentionState* state) {
  constexpr int kVectors = V::kAttentionVectors;
  int d = 0;
  for (; d + kVectors * V::kWidth <= head_dim; d += kVectors * V::kWidth) {
    gather_columns<V, T, Rows, kVectors>(blocks, weights, first, last, head_dim, d, state);
  }
  for (; d < head_dim; d += V::kWidth) {
    gather_columns<V, T, Rows, 1>(blocks, weights, first, last, head_dim, d, state);
  }
}

struct TileRange {
  int first;
  int last;
};

// Keys of the tile at `begin` that the row may see, relative to the tile; none = {0, 0}.
inline TileRange visible(const AttentionRows& rows, int r, int begin) {
  const int position = rows.position[r];
  int first = 0;
  if (rows.window > 0 && position - rows.window + 1 > begin) {
    first = position - rows.window + 1 - begin;
  }
  int last = position + 1 - begin;
  if (last > kAttentionTile) last = kAttentionTile;
  if (first >= last) return {0, 0};
  return {first, last};
}

struct AttentionScratch {
  float scores[kAttentionRows][kAttentionTile];
  alignas(64) float tile[kAttentionTile * kMaxHeadDim];
};

// Rows of one tile that are worked on together: their visible keys differ at the ends alone.
template <class V, class T, int Rows>
void gather_group(const T* const* blocks, const TileRange* range,
                  const float (*weights)[kAttentionTile], int head_dim,
                  const AttentionState* state) {
  int first = 0;
  int last = kAttentionTile;
  for (int m = 0; m < Rows; ++m) {
    first = range[m].first > first ? range[m].first : first;
    last = range[m].last < last ? range[m].last : last;
  }
  if (Rows == 1 || first >= last) {
    for (int m = 0; m < Rows; ++m) {
      gather_rows<V, T, 1>(blocks, weights + m, range[m].first, range[m].last, head_dim, state + m);
    }
    return;
  }
  for (int m = 0; m < Rows; ++m) {
    gather_rows<V, T, 1>(blocks, weights + m, range[m].first, first, head_dim, state + m);
  }
  gather_rows<V, T, Rows>(blocks, weights, first, last, head_dim, state);
  for (int m = 0; m < Rows; ++m) {
    gather_rows<V, T, 1>(blocks, weights + m, last, range[m].last, head_dim, state + m);
  }
}

// Calls work(row, number of rows as a constant) for groups of up to V::kAttentionTogether rows.
template <class V, class F>
inline void each_group(int count, F work) {
  int row = 0;
  auto take = [&](auto rows) {
    if constexpr (rows.value <= V::kAttentionTogether) {
      for (; row + rows.value <= count; row += rows.value) work(row, rows);
    }
  };
  take(std::integral_constant<int, 6>{});
  take(std::integral_constant<int, 4>{});
  take(std::integral_constant<int, 3>{});
  take(std::integral_constant<int, 2>{});
  take(std::integral_constant<int, 1>{});
}

template <class V, class T>
void score_tile(const T* const* keys, const AttentionRows& rows, int head_dim,
                AttentionScratch& s) {
  each_group<V>(rows.count, [&](int row, auto count) {
    score_rows<V, T, count.value>(keys, head_dim, rows.q + row, s.scores + row);
  });
}

template <class V, class T>
void gather_tile(const T* const* blocks, const AttentionRows& rows, const TileRange* range,
                 int head_dim, const AttentionState* state, AttentionScratch& s) {
  each_group<V>(rows.count, [&](int row, auto count) {
    gather_group<V, T, count.value>(blocks, range + row, s.scores + row, head_dim, state + row);
  });
}

// The softmax of a tile joins the row's: values seen so far shrink when the maximum grows.
template <class V>
void soften_row(const AttentionRows& rows, TileRange range, int head_dim, float* scores,
                AttentionState& state) {
  float sum;
  const float max =
      soften<V>(scores, range.first, range.last, rows.scale, rows.soft_cap, state.max, &sum);
  const float correction = exp_one<V>(state.max - max);
  state.sum = state.sum * correction + sum;
  state.max = max;
  if (correction == 1.0F) return;
  for (int d = 0; d < head_dim; d += V::kWidth) {
    V::store(state.values + d, V::mul(V::load(state.values + d), V::set1(correction)));
  }
}

// The tile's blocks in fp32, for many rows: converted once.
template <class V>
void widen_blocks(const std::uint16_t* const* from, int elements, float* tile, const float** to) {
  for (int b = 0; b < kTileBlocks; ++b, tile += elements) {
    to[b] = b > 0 && from[b] == from[b - 1] ? to[b - 1] : tile;
    if (to[b] != tile) continue;
    for (int i = 0; i < elements; i += V::kWidth) V::store(tile + i, V::load_f16(from[b] + i));
  }
}

template <class V>
void attend_tile(const KvView& kv, const AttentionRows& rows, int begin, AttentionState* state,
                 AttentionScratch& s) {
  constexpr int kBlock = core::kBlockTokens;
  TileRange range[kAttentionRows];
  int count = 0;
  for (int r = 0; r < rows.count; ++r) {
    range[r] = visible(rows, r, begin);
    if (range[r].last > count) count = range[r].last;
  }
  if (count <= 0) return;
  const std::uint16_t* keys[kTileBlocks];
  const std::uint16_t* values[kTileBlocks];
  for (int b = 0; b < kTileBlocks; ++b) {  // behind the last block comes nothing that is looked at
    const int block = b * kBlock < count ? b : (count - 1) / kBlock;
    const core::BlockRef ref = kv.blocks[begin / kBlock + block];
    const std::uint16_t* at = kv.slabs[ref.slab] + ref.offset * kv.block_elements;
    keys[b] = at + kv.k_offset;
    values[b] = at + kv.v_offset;
  }
  const bool many = rows.count > V::kAttentionTogether;
  const float* wide[kTileBlocks];
  if (many) {
    widen_blocks<V>(keys, kBlock * kv.head_dim, s.tile, wide);
    score_tile<V>(wide, rows, kv.head_dim, s);
  } else {
    score_tile<V>(keys, rows, kv.head_dim, s);
  }
  for (int r = 0; r < rows.count; ++r) {
    if (range[r].first < range[r].last) {
      soften_row<V>(rows, range[r], kv.head_dim, s.scores[r], state[r]);
    }
  }
  if (many) {
    widen_blocks<V>(values, kBlock * kv.head_dim, s.tile, wide);
    gather_tile<V>(wide, rows, range, kv.head_dim, state, s);
  } else {
    gather_tile<V>(values, rows, range, kv.head_dim, state, s);
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
