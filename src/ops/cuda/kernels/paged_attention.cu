// Attention of tiles of 16 (token, head of the group) pairs over paged keys: decode, prefill chunk and
// verify window are the same code with more or fewer pairs. BODEGA_HEAD_DIM is 64 or 128.
//
// Keys are walked in tiles of kKeyTile from a multiple of kSplit; every kSplit keys the state (largest
// logit, sum, output) is folded into the row's, in order. A split may be computed by another block: its
// state is then folded by `fold`, by the same expressions in the same order.

constexpr int kD = BODEGA_HEAD_DIM;
constexpr int kChunks = kD / 8;  // of 16 bytes, a row of keys
constexpr int kTileBytes = kKeyTile * kD * 2;

BODEGA_INLINE float safe(float m) { return m == NEG_INF ? 0.0f : m; }

struct FoldFactors {
  float old, add;
};
// New largest logit of (m, other) and what the two states are multiplied by.
BODEGA_INLINE FoldFactors fold_factors(float& m, float other) {
  const float top = fmaxf(m, other);
  const FoldFactors f = {exp2_fast(m - safe(top)), exp2_fast(other - safe(top))};
  m = top;
  return f;
}
BODEGA_INLINE float fold_value(FoldFactors f, float old, float add) {
  return __fmaf_rn(old, f.old, add * f.add);
}
// The sink takes its share of the probability, then the output is divided by the sum.
BODEGA_INLINE float final_factor(const AttentionArgs& p, int head, float m, float sum) {
  if (p.sinks == nullptr) return 1.0f / sum;
  const float sink = p.sinks[head] * kLog2e;
  float top = m;
  const FoldFactors f = fold_factors(top, sink);
  return f.old / fold_value(f, sum, 1.0f);
}

template <int kWarps>
BODEGA_INLINE void attend(const AttentionArgs& p) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kThreads = 32 * kWarps;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, c = lane & 3, g = lane >> 2;
  const int kv_head = blockIdx.y;
  grid_launch_next();
  grid_wait();
  const AttentionItem item = p.items[blockIdx.x];
  unsigned char* keys = shared;                     // [2][kKeyTile][kD]
  unsigned char* values = shared + 2 * kTileBytes;  // likewise
  float* state = reinterpret_cast<float*>(shared + 4 * kTileBytes) + warp * 16 * kD;  // [kD / 2][32]

  // This lane's two pairs.
  const int pairs = item.row_count * p.group;
  int row[2], head[2], position[2];
  bool real[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int pair = item.first + warp * 16 + g + 8 * i;
    real[i] = pair < pairs;
    row[i] = item.row_begin + (real[i] ? pair / p.group : 0);
    head[i] = kv_head * p.group + (real[i] ? pair % p.group : 0);
    position[i] = real[i] ? item.position + pair / p.group : -1;
  }
  const int last_pair = min(pairs, item.first + kWarps * 16) - 1;
  const int last_key = item.position + last_pair / p.group;  // the block's
  const int written = item.position + item.row_count;        // keys that exist

  u32 q[kD / 32][2][4];
#pragma unroll
  for (int u = 0; u < kD / 32; ++u) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float* from = p.qkv + static_cast<long long>(row[i]) * p.qkv_stride + head[i] * kD + 32 * u + 8 * c;
      float4 a = make_float4(0.0f, 0.0f, 0.0f, 0.0f), b = a;
      if (real[i]) {
        a = *reinterpret_cast<const float4*>(from);
        b = *reinterpret_cast<const float4*>(from + 4);
      }
      q[u][i][0] = pack_half2(a.x, a.y);
      q[u][i][1] = pack_half2(a.z, a.w);
      q[u][i][2] = pack_half2(b.x, b.y);
      q[u][i][3] = pack_half2(b.z, b.w);
    }
  }

  const int key_begin = item.split_begin * kSplit;
  const int key_end = min(item.split_end * kSplit, last_key + 1);
  // The addresses of a tile's blocks are asked for a tile ahead.
  u64 block[kKeyTile / 16];
  auto find_blocks = [&](int key) {
#pragma unroll
    for (int b = 0; b < kKeyTile / 16; ++b) {
      block[b] = p.blocks[item.block_begin + min(key / 16 + b, (written - 1) / 16)];
    }
  };
  auto fetch = [&](int key) {
    if (key < key_end) {
      const int stage = (key / kKeyTile) & 1;
#pragma unroll
      for (int b = 0; b < kKeyTile / 16; ++b) {
        const u16* head_keys =
            reinterpret_cast<const u16*>(block[b]) + p.k_offset_in_block + kv_head * 16 * kD;
        const u16* head_values =
            reinterpret_cast<const u16*>(block[b]) + p.v_offset_in_block + kv_head * 16 * kD;
#pragma unroll
        for (int i = 0; i < 16 * kChunks / kThreads; ++i) {
          const int at = i * kThreads + threadIdx.x, j = at / kChunks, chunk = at % kChunks;
          const int bytes = key + 16 * b + j < written ? 16 : 0;
          unsigned char* to = keys + stage * kTileBytes + (16 * b + j) * kD * 2;
          copy_async_or_zero(to + (chunk ^ ((j & 1) << 2)) * 16, head_keys + at * 8, bytes);
          to = values + stage * kTileBytes + (16 * b + j) * kD * 2;
          copy_async_or_zero(to + (chunk ^ (j & 7)) * 16, head_values + at * 8, bytes);
        }
      }
      find_blocks(key + kKeyTile);
    }
    copy_commit();
  };

  float top[2] = {NEG_INF, NEG_INF}, sum[2] = {0.0f, 0.0f};              // folded
  float split_top[2] = {NEG_INF, NEG_INF}, split_sum[2] = {0.0f, 0.0f};  // of this split
  float o[kD / 8][4];
#pragma unroll
  for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) o[n][i] = 0.0f;
  }
  bool folded = false;
  const float log2_scale = p.scale * kLog2e;

  find_blocks(key_begin);
  fetch(key_begin);
  for (int key = key_begin; key < key_end; key += kKeyTile) {
    fetch(key + kKeyTile);
    copy_wait<1>();
    __syncthreads();
    const int stage = (key / kKeyTile) & 1;
    const unsigned char* k_tile = keys + stage * kTileBytes;
    const unsigned char* v_tile = values + stage * kTileBytes;
    float s[kKeyTile / 8][4];
#pragma unroll
    for (int j = 0; j < kKeyTile / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s[j][i] = 0.0f;
#pragma unroll
      for (int u = 0; u < kD / 32; ++u) {
        const uint4 k = *reinterpret_cast<const uint4*>(
            k_tile + (8 * j + g) * kD * 2 + ((4 * u + c) ^ ((g & 1) << 2)) * 16);
        mma(s[j], q[u][0][0], q[u][1][0], q[u][0][1], q[u][1][1], k.x, k.y);
        mma(s[j], q[u][0][2], q[u][1][2], q[u][0][3], q[u][1][3], k.z, k.w);
      }
    }
    float best[2] = {NEG_INF, NEG_INF};
#pragma unroll
    for (int j = 0; j < kKeyTile / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = key + 8 * j + 2 * c + (i & 1), own = position[i >> 1];
        float v = s[j][i];
        if (p.soft_cap > 0.0f) {
          v = p.soft_cap * tanhf(v * p.scale / p.soft_cap) * kLog2e;
        } else {
          v *= log2_scale;
        }
        const bool visible = at <= own && (p.window == 0 || at > own - p.window);
        s[j][i] = visible ? v : NEG_INF;
        best[i >> 1] = fmaxf(best[i >> 1], s[j][i]);
      }
    }
    float shrink[2], now[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      best[i] = fmaxf(best[i], __shfl_xor_sync(~0u, best[i], 1));
      best[i] = fmaxf(best[i], __shfl_xor_sync(~0u, best[i], 2));
      now[i] = fmaxf(split_top[i], best[i]);
      shrink[i] = exp2_fast(split_top[i] - safe(now[i]));
      split_top[i] = now[i];
      now[i] = safe(now[i]);
    }
    float add[2] = {0.0f, 0.0f};
#pragma unroll
    for (int j = 0; j < kKeyTile / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        s[j][i] = exp2_fast(s[j][i] - now[i >> 1]);
        add[i >> 1] += s[j][i];
      }
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      add[i] += __shfl_xor_sync(~0u, add[i], 1);
      add[i] += __shfl_xor_sync(~0u, add[i], 2);
      split_sum[i] = __fmaf_rn(split_sum[i], shrink[i], add[i]);
    }
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) o[n][i] *= shrink[i >> 1];
    }
#pragma unroll
    for (int t = 0; t < kKeyTile / 16; ++t) {
      const u32 a0 = pack_half2(s[2 * t][0], s[2 * t][1]), a1 = pack_half2(s[2 * t][2], s[2 * t][3]);
      const u32 a2 = pack_half2(s[2 * t + 1][0], s[2 * t + 1][1]);
      const u32 a3 = pack_half2(s[2 * t + 1][2], s[2 * t + 1][3]);
      const int j = 16 * t + (lane & 15);
#pragma unroll
      for (int n = 0; n < kD / 8; n += 2) {
        u32 b[4];
        load_matrices_transposed(b, v_tile + j * kD * 2 + ((n + (lane >> 4)) ^ (j & 7)) * 16);
        mma(o[n], a0, a1, a2, a3, b[0], b[1]);
        mma(o[n + 1], a0, a1, a2, a3, b[2], b[3]);
      }
    }
    __syncthreads();

    const bool split_done = (key + kKeyTile) % kSplit == 0 || key + kKeyTile >= key_end;
    if (!split_done) continue;
    if (item.partial >= 0) {
      const long long at = (static_cast<long long>(item.partial + key / kSplit - item.split_begin) * p.kv_heads +
                            kv_head) * 16;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const long long pair = at + g + 8 * i;
        if (c == 0) {
          p.partial_max[pair] = split_top[i];
          p.partial_sum[pair] = split_sum[i];
        }
#pragma unroll
        for (int n = 0; n < kD / 8; ++n) {
          *reinterpret_cast<float2*>(p.partial_out + pair * kD + 8 * n + 2 * c) =
              make_float2(o[n][2 * i], o[n][2 * i + 1]);
        }
      }
    } else {
      FoldFactors f[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        f[i] = fold_factors(top[i], split_top[i]);
        sum[i] = fold_value(f[i], sum[i], split_sum[i]);
      }
#pragma unroll
      for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float* kept = state + (n * 4 + i) * 32 + lane;
          *kept = fold_value(f[i >> 1], folded ? *kept : 0.0f, o[n][i]);
        }
      }
      folded = true;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      split_top[i] = NEG_INF;
      split_sum[i] = 0.0f;
    }
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) o[n][i] = 0.0f;
    }
  }
  if (item.partial >= 0) return;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (!real[i]) continue;
    const float factor = final_factor(p, head[i], top[i], sum[i]);
    float* out = p.out + static_cast<long long>(row[i]) * p.out_stride + head[i] * kD + 2 * c;
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
      const float* kept = state + (n * 4 + 2 * i) * 32 + lane;
      *reinterpret_cast<float2*>(out + 8 * n) = make_float2(kept[0] * factor, kept[32] * factor);
    }
  }
}

extern "C" __global__ void __launch_bounds__(32) attend_1(const __grid_constant__ AttentionArgs p) {
  attend<1>(p);
}
extern "C" __global__ void __launch_bounds__(128) attend_4(const __grid_constant__ AttentionArgs p) {
  attend<4>(p);
}

// One block a (tile, kv head, pair): folds the splits' states in order. kD threads.
extern "C" __global__ void __launch_bounds__(kD) fold(const __grid_constant__ FoldArgs given) {
  grid_launch_next();
  grid_wait();
  const AttentionArgs& p = given.attention;
  const FoldItem item = given.items[blockIdx.x];
  const int kv_head = blockIdx.y, local = blockIdx.z, pair = item.first + local;
  if (pair >= item.row_count * p.group) return;
  float top = NEG_INF, sum = 0.0f, o = 0.0f;
  for (int split = 0; split < item.splits; ++split) {
    const long long at =
        (static_cast<long long>(item.partial + split) * p.kv_heads + kv_head) * 16 + local;
    const FoldFactors f = fold_factors(top, p.partial_max[at]);
    sum = fold_value(f, sum, p.partial_sum[at]);
    o = fold_value(f, o, p.partial_out[at * kD + threadIdx.x]);
  }
  const int head = kv_head * p.group + pair % p.group;
  p.out[static_cast<long long>(item.row_begin + pair / p.group) * p.out_stride + head * kD + threadIdx.x] =
      o * final_factor(p, head, top, sum);
}
