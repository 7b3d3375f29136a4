// Causal attention over a paged cache: decode rows, prefill chunks and verify windows in one
// dispatch. Compiled with BODEGA_HEAD_DIM (a multiple of 32, at most 256).
//
// A threadgroup serves up to eight (token, head) pairs that share one kv head. It walks the splits
// of its item: 512 keys at absolute boundaries, one piece of 64 for each of its eight simdgroups.
// A piece is one softmax; pieces are added up in order, splits are folded in order, here or by
// fold_splits. So what meets what depends on the row's position alone.

constant constexpr int kSplit = 512;
constant constexpr int kPiece = 64;
constant constexpr int kSimds = 8;
constant constexpr int kPairs = 8;
constant constexpr int kKeyTiles = kPiece / 8;
constant constexpr int kColumns = 32;  // of the values that a round of adding up takes
constant constexpr int kRounds = BODEGA_HEAD_DIM / kColumns;
constant constexpr float kNothing = -3.0e38f;

inline device const half* slab_of(device const half* slab0, device const half* slab1,
                                  device const half* slab2, device const half* slab3, int slab) {
  if (slab == 0) return slab0;
  if (slab == 1) return slab1;
  return slab == 2 ? slab2 : slab3;
}

// The block that holds a key.
inline device const half* block_of(device const half* slab0, device const half* slab1,
                                   device const half* slab2, device const half* slab3,
                                   device const BlockPlace* blocks, AttentionItem item, int key,
                                   constant AttentionParams& p) {
  const BlockPlace block = blocks[item.block_begin + key / 16];
  return slab_of(slab0, slab1, slab2, slab3, block.slab) + long(block.offset) * p.block_elements;
}

inline float exp_or_zero(float x) { return x < -87.0f ? 0.0f : precise::exp(x); }

// Greatest and sum over the lanes that hold a row of a matrix.
inline float row_max(float x) {
  x = max(x, simd_shuffle_xor(x, 1));
  return max(x, simd_shuffle_xor(x, 8));
}
inline float row_sum(float x) {
  x += simd_shuffle_xor(x, 1);
  x += simd_shuffle_xor(x, 8);
  return x;
}

// Threadgroup (x, y): item x of kv head y, by 256 threads.
kernel void paged_attention(constant AttentionParams& p [[buffer(0)]],
                            device const float* qkv [[buffer(1)]],
                            device const AttentionItem* items [[buffer(2)]],
                            device const BlockPlace* blocks [[buffer(3)]],
                            device const float* sinks [[buffer(4)]],
                            device const half* slab0 [[buffer(5)]],
                            device const half* slab1 [[buffer(6)]],
                            device const half* slab2 [[buffer(7)]],
                            device const half* slab3 [[buffer(8)]],
                            device float* out [[buffer(9)]],
                            device float* partial_values [[buffer(10)]],
                            device float2* partial_state [[buffer(11)]],
                            uint3 group [[threadgroup_position_in_grid]],
                            uint thread_index [[thread_index_in_threadgroup]],
                            uint simd [[simdgroup_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float piece_max[kSimds * kPairs];
  threadgroup float piece_sum[kSimds * kPairs];
  threadgroup float parts[kSimds * kPairs * kColumns];
  const AttentionItem item = items[group.x];
  const int kv_head = int(group.y);
  const int heads = p.heads / p.kv_heads;
  const int element_row = fragment_row_of(lane);
  const int element_column = fragment_column_of(lane);
  const int head_offset = kv_head * 16 * BODEGA_HEAD_DIM;
  const int last_key = item.position + (item.first_pair + item.pair_count - 1) / heads;

  // The pair of this lane's row of the matrices.
  const int pair = item.first_pair + element_row;
  const bool valid = element_row < item.pair_count;
  const int position = item.position + pair / heads;
  const int first_seen = p.window > 0 ? max(0, position - p.window + 1) : 0;
  device const float* q = qkv + long(item.row + pair / heads) * p.row_stride +
                          (kv_head * heads + pair % heads) * BODEGA_HEAD_DIM;

  simdgroup_float8x8 queries[BODEGA_HEAD_DIM / 8];
  for (int d = 0; d < BODEGA_HEAD_DIM / 8; ++d) {
    queries[d] = zero_matrix();
    if (valid) {
      const float first = q[8 * d + element_column];
      const float second = q[8 * d + element_column + 1];
      set_elements(queries[d], first, second);
    }
  }

  // What this thread adds up: row own_row, column own_column of every round.
  const int own_row = int(thread_index) / kColumns;
  const int own_column = int(thread_index) % kColumns;
  float state_max = kNothing;
  float state_sum = 0.0f;
  float state[kRounds];
  for (int r = 0; r < kRounds; ++r) state[r] = 0.0f;

  for (int split = item.split_begin; split < item.split_end; ++split) {
    const int begin = split * kSplit + int(simd) * kPiece;
    // Scores of 8 pairs and 64 keys.
    simdgroup_float8x8 scores[kKeyTiles];
    for (int t = 0; t < kKeyTiles; ++t) scores[t] = zero_matrix();
    for (int t = 0; t < kKeyTiles; ++t) {
      const int key = begin + 8 * t;
      if (key > last_key) continue;
      device const half* keys_at = block_of(slab0, slab1, slab2, slab3, blocks, item, key, p) +
                                   (p.k_offset_elements + head_offset + key % 16 + element_column);
      for (int d = 0; d < BODEGA_HEAD_DIM / 8; ++d) {
        simdgroup_half8x8 keys;  // [d, key]; a key not yet written spoils its own column alone
        const half2 two = ((device const half2*)(keys_at + (d * 8 + element_row) * 16))[0];
        set_elements(keys, two.x, two.y);
        simdgroup_multiply_accumulate(scores[t], queries[d], keys, scores[t]);
      }
    }
    // Softmax of the piece.
    float top = kNothing;
    for (int t = 0; t < kKeyTiles; ++t) {
      for (int e = 0; e < 2; ++e) {
        const int key = begin + 8 * t + element_column + e;
        float s = scores[t].thread_elements()[e] * p.scale;
        if (p.soft_cap > 0.0f) s = p.soft_cap * precise::tanh(s / p.soft_cap);
        const bool seen = valid && key <= position && key >= first_seen;
        s = seen ? s : kNothing;
        scores[t].thread_elements()[e] = s;
        top = max(top, s);
      }
    }
    top = row_max(top);
    float sum = 0.0f;
    for (int t = 0; t < kKeyTiles; ++t) {
      for (int e = 0; e < 2; ++e) {
        const float s = scores[t].thread_elements()[e];
        const float weight = s == kNothing ? 0.0f : exp_or_zero(s - top);
        scores[t].thread_elements()[e] = weight;
        sum += weight;
      }
    }
    sum = row_sum(sum);
    if (element_column == 0) {
      piece_max[int(simd) * kPairs + element_row] = top;
      piece_sum[int(simd) * kPairs + element_row] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // The split's own maximum, and what the state so far and each piece count for.
    float split_max = kNothing;
    for (int s = 0; s < kSimds; ++s) split_max = max(split_max, piece_max[s * kPairs + own_row]);
    float split_sum = 0.0f;
    float factor[kSimds];
    for (int s = 0; s < kSimds; ++s) {
      factor[s] = exp_or_zero(piece_max[s * kPairs + own_row] - split_max);
      if (piece_sum[s * kPairs + own_row] == 0.0f) factor[s] = 0.0f;
      split_sum = fma(piece_sum[s * kPairs + own_row], factor[s], split_sum);
    }
    const float new_max = max(state_max, split_max);
    const float keep = exp_or_zero(state_max - new_max);
    const float gain = exp_or_zero(split_max - new_max);
    for (int r = 0; r < kRounds; ++r) {
      simdgroup_float8x8 piece[kColumns / 8];
      for (int c = 0; c < kColumns / 8; ++c) piece[c] = zero_matrix();
      for (int t = 0; t < kKeyTiles; ++t) {
        if (begin + 8 * t > last_key) continue;
        const int key = begin + 8 * t + element_row;
        device const half* at =
            block_of(slab0, slab1, slab2, slab3, blocks, item, begin + 8 * t, p) +
            (p.v_offset_elements + head_offset + key % 16 * BODEGA_HEAD_DIM);
        for (int c = 0; c < kColumns / 8; ++c) {
          simdgroup_half8x8 values;  // [key, d]; what no row of the item sees is not multiplied
          half2 two = half2(half(0.0f), half(0.0f));
          if (key <= last_key) {
            two = ((device const half2*)(at + (r * kColumns + c * 8 + element_column)))[0];
          }
          set_elements(values, two.x, two.y);
          simdgroup_multiply_accumulate(piece[c], scores[t], values, piece[c]);
        }
      }
      for (int c = 0; c < kColumns / 8; ++c) {
        for (int e = 0; e < 2; ++e) {
          parts[(int(simd) * kPairs + element_row) * kColumns + c * 8 + element_column + e] =
              piece[c].thread_elements()[e];
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float value = 0.0f;
      for (int s = 0; s < kSimds; ++s) {
        value = fma(parts[(s * kPairs + own_row) * kColumns + own_column], factor[s], value);
      }
      if (split_sum != 0.0f) state[r] = fma(value, gain, state[r] * keep);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (split_sum != 0.0f) {
      state_sum = fma(split_sum, gain, state_sum * keep);
      state_max = new_max;
    }
  }

  if (own_row >= item.pair_count) return;
  const int own_pair = item.first_pair + own_row;
  const int row = item.row + own_pair / heads;
  const int head = kv_head * heads + own_pair % heads;
  if (item.partial >= 0) {
    const long at = long(item.partial) * p.heads + head;
    for (int r = 0; r < kRounds; ++r) {
      partial_values[at * BODEGA_HEAD_DIM + r * kColumns + own_column] = state[r];
    }
    if (own_column == 0) partial_state[at] = float2(state_max, state_sum);
    return;
  }
  float scale = 1.0f;
  if (p.has_sinks != 0) {
    const float sink = sinks[head];
    const float top = max(sink, state_max);
    scale = exp_or_zero(state_max - top);
    state_sum = fma(state_sum, scale, exp_or_zero(sink - top));
  }
  const float factor = scale / state_sum;
  for (int r = 0; r < kRounds; ++r) {
    out[long(row) * p.out_stride + head * BODEGA_HEAD_DIM + r * kColumns + own_column] =
        state[r] * factor;
  }
}

// Threadgroup (x, y): head y of fold item x, by one simdgroup. The same folding as above.
kernel void fold_splits(constant AttentionParams& p [[buffer(0)]],
                        device const FoldItem* items [[buffer(1)]],
                        device const float* sinks [[buffer(2)]],
                        device const float* partial_values [[buffer(3)]],
                        device const float2* partial_state [[buffer(4)]],
                        device float* out [[buffer(5)]],
                        uint3 group [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]],
                        uint simd [[simdgroup_index_in_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]]) {
  const FoldItem item = items[group.x];
  const int head = int(group.y);
  float state_max = kNothing;
  float state_sum = 0.0f;
  float state[kRounds];
  for (int r = 0; r < kRounds; ++r) state[r] = 0.0f;
  for (int split = 0; split < item.splits; ++split) {
    const long at = long(item.partial + split) * p.heads + head;
    const float2 piece = partial_state[at];
    if (piece.y == 0.0f) continue;
    const float new_max = max(state_max, piece.x);
    const float keep = exp_or_zero(state_max - new_max);
    const float gain = exp_or_zero(piece.x - new_max);
    for (int r = 0; r < kRounds; ++r) {
      const float value = partial_values[at * BODEGA_HEAD_DIM + r * kColumns + int(lane)];
      state[r] = fma(value, gain, state[r] * keep);
    }
    state_sum = fma(piece.y, gain, state_sum * keep);
    state_max = new_max;
  }
  float scale = 1.0f;
  if (p.has_sinks != 0) {
    const float sink = sinks[head];
    const float top = max(sink, state_max);
    scale = exp_or_zero(state_max - top);
    state_sum = fma(state_sum, scale, exp_or_zero(sink - top));
  }
  const float factor = scale / state_sum;
  for (int r = 0; r < kRounds; ++r) {
    out[long(item.row) * p.out_stride + head * BODEGA_HEAD_DIM + r * kColumns + int(lane)] =
        state[r] * factor;
  }
}
