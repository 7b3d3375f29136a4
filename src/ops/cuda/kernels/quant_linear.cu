// y = x W^T for quantised W. Compiled once a format: BODEGA_BITS 4 or 8, BODEGA_GROUP 32 or 64,
// BODEGA_BF16 1 when scales are bfloat16.
//
// A sum over K: slices at fixed places; in a slice unit after unit; in a unit each group's codes times x
// on the tensor cores, p, then acc = fma(scale, p, acc), acc = fma(bias, sum of x, acc). Every kernel
// here does exactly that for every row, so a row's bits do not depend on which of them ran.

constexpr int kGroups = kUnitCols / BODEGA_GROUP;  // a unit
constexpr int kCodeBytes = 128 * BODEGA_BITS;      // a unit
constexpr int kScaleBytes = 64 * kGroups;
constexpr int kUnitBytes = kCodeBytes + kScaleBytes;

BODEGA_INLINE float scale_to_float(u16 bits) {
#if BODEGA_BF16
  return __uint_as_float(static_cast<u32>(bits) << 16);
#else
  return half_to_float(bits);
#endif
}

// The mma registers of rows g and g + 8, columns 32 h + 8 c .. + 7: a[0..3] of the first 16 columns of
// the half, a[4..7] of the second.
BODEGA_INLINE void decode4(u32 word, u32* a, int row) {
  const u32 high = word >> 8;
  a[0 + row] = word & 0x000f000f;
  a[2 + row] = word & 0x00f000f0;
  a[4 + row] = high & 0x000f000f;
  a[6 + row] = high & 0x00f000f0;
}
BODEGA_INLINE void decode8(u32 low, u32 high, u32* a, int row) {
  a[0 + row] = __byte_perm(low, 0, 0x4140);
  a[2 + row] = __byte_perm(low, 0, 0x4342);
  a[4 + row] = __byte_perm(high, 0, 0x4140);
  a[6 + row] = __byte_perm(high, 0, 0x4342);
}

// One lane's share of a unit, ready to multiply.
struct Fragment {
  u32 a[2][8];                // [half]
  float scale[kGroups][2];    // [group][row g, g + 8]
  float bias[kGroups][2];

  BODEGA_INLINE void load(const unsigned char* codes, const unsigned char* scales, int lane) {
#if BODEGA_BITS == 4
    const uint4 w = reinterpret_cast<const uint4*>(codes)[lane];
    decode4(w.x, a[0], 0);
    decode4(w.y, a[0], 1);
    decode4(w.z, a[1], 0);
    decode4(w.w, a[1], 1);
#else
    for (int h = 0; h < 2; ++h) {
      const uint4 w = reinterpret_cast<const uint4*>(codes)[32 * h + lane];
      decode8(w.x, w.y, a[h], 0);
      decode8(w.z, w.w, a[h], 1);
    }
#endif
    for (int q = 0; q < kGroups; ++q) {
      const uint2 s = reinterpret_cast<const uint2*>(scales)[8 * q + (lane >> 2)];
      scale[q][0] = scale_to_float(static_cast<u16>(s.x));
      scale[q][1] = scale_to_float(static_cast<u16>(s.y));
      bias[q][0] = scale_to_float(static_cast<u16>(s.x >> 16));
      bias[q][1] = scale_to_float(static_cast<u16>(s.y >> 16));
    }
  }
};

// acc[r][t] += unit of tile r times token tile t. x: columns 8 c .. + 7 of token g of both halves; sums: of
// the unit's groups, tokens 2 c and 2 c + 1. Chains of dependent products are interleaved.
template <int kTiles, int kTokenTiles>
BODEGA_INLINE void multiply(float (*acc)[kTokenTiles][4], const Fragment* f, const uint4 (*x)[2],
                            const float2 (*sums)[kGroups]) {
#pragma unroll
  for (int q = 0; q < kGroups; ++q) {
    float p[kTiles][kTokenTiles][4];
#pragma unroll
    for (int h = q * 2 / kGroups; h < (q + 1) * 2 / kGroups; ++h) {
#pragma unroll
      for (int r = 0; r < kTiles; ++r) {
#pragma unroll
        for (int t = 0; t < kTokenTiles; ++t) {
          const u32* a = f[r].a[h];
          if (h == q * 2 / kGroups) {
            mma_first(p[r][t], a[0], a[1], a[2], a[3], x[t][h].x, x[t][h].y);
          } else {
            mma(p[r][t], a[0], a[1], a[2], a[3], x[t][h].x, x[t][h].y);
          }
        }
      }
#pragma unroll
      for (int r = 0; r < kTiles; ++r) {
#pragma unroll
        for (int t = 0; t < kTokenTiles; ++t) {
          mma(p[r][t], f[r].a[h][4], f[r].a[h][5], f[r].a[h][6], f[r].a[h][7], x[t][h].z, x[t][h].w);
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kTiles; ++r) {
#pragma unroll
      for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float sum = (i & 1) ? sums[t][q].y : sums[t][q].x;
          const float scaled = __fmaf_rn(f[r].scale[q][i >> 1], p[r][t][i], acc[r][t][i]);
          acc[r][t][i] = __fmaf_rn(f[r].bias[q][i >> 1], sum, scaled);
        }
      }
    }
  }
}

BODEGA_INLINE float gelu_tanh(float x) {
  const float inner = 0.7978845608f * __fmaf_rn(0.044715f * x * x, x, x);
  return 0.5f * x * (1.0f + tanhf(inner));
}

// Writes output `n` (of the tile pair when gated) of token `m`; `first` and `second` are the sums of the
// pair's two tiles, the second unused without a gate.
BODEGA_INLINE void finish(const LinearArgs& p, int n, int m, float first, float second) {
  const float scale = p.row_scale[m];
  float y = first * scale;
  if (p.bias != nullptr) y += p.bias[n];
  float* out = p.out + static_cast<long long>(m) * p.out_stride + n;
  if (p.epilogue == kLinearStore) {
    *out = y;
  } else if (p.epilogue == kLinearResidual) {
    *out += y;
  } else if (p.epilogue == kLinearLogits) {
    y *= p.logit_scale;
    *out = p.soft_cap > 0.0f ? p.soft_cap * tanhf(y / p.soft_cap) : y;
  } else {
    float up = second * scale;
    if (p.bias != nullptr) up += p.bias[p.w.rows / 2 + n];
    *out = (p.epilogue == kLinearSwiGlu ? y / (1.0f + expf(-y)) : gelu_tanh(y)) * up;
  }
}

BODEGA_INLINE int slice_begin(int slice, int units) {
  const int per = (units + kSlices - 1) / kSlices;
  return min(units, slice * per);
}

// Few rows: a block owns kTiles tiles of 16 outputs, a warp a slice of K; the weights stream through a
// ring of the warp's own. kTokens = 8 * kTokenTiles rows a block, more in grid.y.
template <int kTiles, int kTokenTiles, int kStages>
BODEGA_INLINE void narrow(const LinearArgs& p) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kStage = kTiles * kUnitBytes;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, c = lane & 3, g = lane >> 2;
  const int tile = blockIdx.x * kTiles;
  const int begin = slice_begin(warp, p.w.units), end = slice_begin(warp + 1, p.w.units);
  unsigned char* ring = shared + warp * kStages * kStage;

  int fetched = begin;  // next unit to ask for, its place in the ring and its lane's pointers
  unsigned char* to = ring + lane * 16;
  const long long first = static_cast<long long>(tile) * p.w.units + begin;
  const unsigned char* codes = p.w.codes + first * kCodeBytes + lane * 16;
  const unsigned char* scales = p.w.scales + first * kScaleBytes + lane * 16;
  const long long next_tile_codes = static_cast<long long>(p.w.units) * kCodeBytes;
  const long long next_tile_scales = static_cast<long long>(p.w.units) * kScaleBytes;
  auto fetch = [&]() {
    if (fetched < end) {
#pragma unroll
      for (int r = 0; r < kTiles; ++r) {
#pragma unroll
        for (int i = 0; i < kCodeBytes / 512; ++i) {
          copy_async(to + r * kUnitBytes + i * 512, codes + r * next_tile_codes + i * 512);
        }
        if (lane < kScaleBytes / 16) {
          copy_async(to + r * kUnitBytes + kCodeBytes, scales + r * next_tile_scales);
        }
      }
      codes += kCodeBytes;
      scales += kScaleBytes;
      to = to + kStage == ring + lane * 16 + kStages * kStage ? ring + lane * 16 : to + kStage;
    }
    ++fetched;
    copy_commit();
  };
  for (int s = 0; s < kStages - 1; ++s) fetch();  // weights: no kernel of the step writes them
  grid_launch_next();
  grid_wait();

  const int token = blockIdx.y * kTokenTiles * 8;
  const u16* x = p.x + static_cast<long long>(token + g) * p.x_stride + 8 * c;
  const float* sums = p.sums + token + 2 * c;
  float acc[kTiles][kTokenTiles][4];
#pragma unroll
  for (int r = 0; r < kTiles; ++r) {
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[r][t][i] = 0.0f;
    }
  }
  // x comes out of the second-level cache: asked for two units ahead.
  uint4 xs[2][kTokenTiles][2];
  float2 group_sums[2][kTokenTiles][kGroups];
  auto load_x = [&](int unit, int ahead) {
    unit = max(begin, min(unit, end - 1));
    if (unit >= p.w.units) return;
#pragma unroll
    for (int t = 0; t < kTokenTiles; ++t) {
      const u16* row = x + static_cast<long long>(t) * 8 * p.x_stride + unit * kUnitCols;
      xs[ahead][t][0] = *reinterpret_cast<const uint4*>(row);
      xs[ahead][t][1] = *reinterpret_cast<const uint4*>(row + 32);
#pragma unroll
      for (int q = 0; q < kGroups; ++q) {
        group_sums[ahead][t][q] = *reinterpret_cast<const float2*>(
            sums + static_cast<long long>(unit * kGroups + q) * p.sum_stride + t * 8);
      }
    }
  };
  load_x(begin, 0);
  load_x(begin + 1, 1);
  const unsigned char* stage = ring;
  for (int unit = begin; unit < end; unit += 2) {
#pragma unroll
    for (int ahead = 0; ahead < 2; ++ahead) {
      const int now = unit + ahead;
      if (now >= end) break;
      copy_wait<kStages - 2>();
      __syncwarp();
      fetch();
      Fragment f[kTiles];
#pragma unroll
      for (int r = 0; r < kTiles; ++r) {
        f[r].load(stage + r * kUnitBytes, stage + r * kUnitBytes + kCodeBytes, lane);
      }
      stage = stage + kStage == ring + kStages * kStage ? ring : stage + kStage;
      multiply<kTiles, kTokenTiles>(acc, f, xs[ahead], group_sums[ahead]);
      load_x(now + 2, ahead);
    }
  }

  // Slices are added in order, a token tile at a time. The ring is done with.
  copy_wait<0>();
  float* red = reinterpret_cast<float*>(shared);  // [slice][kTiles][128]
  const bool gated = p.epilogue == kLinearSwiGlu || p.epilogue == kLinearGeGlu;
#pragma unroll
  for (int t = 0; t < kTokenTiles; ++t) {
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kTiles; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) red[(warp * kTiles + r) * 128 + i * 32 + lane] = acc[r][t][i];
    }
    __syncthreads();
    for (int e = threadIdx.x; e < kTiles * 128; e += kSlices * 32) {
      const int r = e >> 7, i = (e >> 5) & 3;
      float sum[2] = {0.0f, 0.0f};
      for (int s = 0; s < kSlices; ++s) {
        sum[0] += red[(s * kTiles + r) * 128 + (e & 127)];
        if (gated && r == 0) sum[1] += red[(s * kTiles + kTiles - 1) * 128 + (e & 127)];
      }
      const int m = token + t * 8 + 2 * c + (i & 1);
      const int local = g + (i >= 2 ? 8 : 0);
      if (m >= p.tokens) continue;
      if (gated) {
        const int n = tile / 2 * 16 + local;
        if (r == 0 && n < p.w.rows / 2) finish(p, n, m, sum[0], sum[1]);
      } else {
        const int n = (tile + r) * 16 + local;
        if (n < p.w.rows) finish(p, n, m, sum[0], 0.0f);
      }
    }
  }
}

// Many rows: a block owns 32 * kWarpRows outputs by 8 * kTokenTiles * kWarpTokens rows; x and weights pass
// through shared memory once a block. Slices run in order in one block, or each in its own (grid.z),
// and are then added by linear_reduce.
template <int kWarpRows, int kWarpTokens, int kTokenTiles, int kStages>
BODEGA_INLINE void wide(const LinearArgs& p) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int kThreads = 32 * kWarpRows * kWarpTokens;
  constexpr int kRowTiles = 2 * kWarpRows;
  constexpr int kTokens = 8 * kTokenTiles * kWarpTokens;
  constexpr int kWeightStage = kRowTiles * kUnitBytes;
  constexpr int kXStage = kTokens * kUnitCols * 2;
  constexpr int kSumStage = kGroups * kTokens * 4;
  constexpr int kStage = kWeightStage + kXStage + kSumStage;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, c = lane & 3, g = lane >> 2;
  const int warp_row = warp % kWarpRows, warp_token = warp / kWarpRows;
  const int tile = blockIdx.y * kRowTiles;
  const int token = blockIdx.x * kTokens;
  const int slices = kSlices / gridDim.z;
  const int first_slice = blockIdx.z * slices;
  const int begin = slice_begin(first_slice, p.w.units);
  const int end = slice_begin(first_slice + slices, p.w.units);

  // What this thread copies of every unit: pieces of 16 bytes, whose sources step from unit to unit.
  constexpr int kCodeChunks = kRowTiles * kCodeBytes / 16, kScaleChunks = kRowTiles * kScaleBytes / 16;
  constexpr int kCodeSteps = (kCodeChunks + kThreads - 1) / kThreads;
  constexpr int kXSteps = kTokens * 8 / kThreads;
  constexpr int kSumChunks = kGroups * kTokens / 4;
  static_assert(kXSteps * kThreads == kTokens * 8 && kScaleChunks <= kThreads && kSumChunks <= kThreads);
  const unsigned char* codes[kCodeSteps];
  int code_at[kCodeSteps];
#pragma unroll
  for (int i = 0; i < kCodeSteps; ++i) {
    const int chunk = threadIdx.x + i * kThreads, r = chunk / (kCodeBytes / 16), part = chunk % (kCodeBytes / 16);
    const long long unit = static_cast<long long>(min(tile + r, p.w.tiles - 1)) * p.w.units + begin;
    codes[i] = p.w.codes + unit * kCodeBytes + part * 16;
    code_at[i] = r * kUnitBytes + part * 16;
  }
  const int scale_tile = threadIdx.x / (kScaleBytes / 16), scale_part = threadIdx.x % (kScaleBytes / 16);
  const unsigned char* scales =
      p.w.scales + scale_part * 16 +
      (static_cast<long long>(min(tile + scale_tile, p.w.tiles - 1)) * p.w.units + begin) * kScaleBytes;
  const int x_row = threadIdx.x >> 3, x_chunk = threadIdx.x & 7;
  const u16* x_from = p.x + static_cast<long long>(token + x_row) * p.x_stride + begin * kUnitCols + x_chunk * 8;
  const int x_at = x_row * 128 + (x_chunk ^ ((x_row & 1) << 2)) * 16;
  const long long x_step = static_cast<long long>(kThreads / 8) * p.x_stride;
  const int sum_group = threadIdx.x / (kTokens / 4), sum_chunk = threadIdx.x % (kTokens / 4);
  const float* sums_from =
      p.sums + static_cast<long long>(begin * kGroups + sum_group) * p.sum_stride + token + sum_chunk * 4;
  int weights_at = 0, inputs_at = 0;  // places in the ring
  auto fetch_weights = [&]() {
    unsigned char* stage = shared + weights_at * kStage;
#pragma unroll
    for (int i = 0; i < kCodeSteps; ++i) {
      if (kCodeChunks % kThreads == 0 || threadIdx.x + i * kThreads < kCodeChunks) {
        copy_async(stage + code_at[i], codes[i]);
      }
      codes[i] += kCodeBytes;
    }
    if (threadIdx.x < kScaleChunks) {
      copy_async(stage + scale_tile * kUnitBytes + kCodeBytes + scale_part * 16, scales);
    }
    scales += kScaleBytes;
    weights_at = weights_at + 1 == kStages ? 0 : weights_at + 1;
  };
  auto fetch_x = [&]() {
    unsigned char* stage = shared + inputs_at * kStage + kWeightStage;
#pragma unroll
    for (int i = 0; i < kXSteps; ++i) {
      copy_async(stage + x_at + i * (kThreads / 8) * 128, x_from + i * x_step);
    }
    x_from += kUnitCols;
    if (threadIdx.x < kSumChunks) {
      copy_async(stage + kXStage + (sum_group * kTokens + sum_chunk * 4) * 4, sums_from);
    }
    sums_from += kGroups * p.sum_stride;
    inputs_at = inputs_at + 1 == kStages ? 0 : inputs_at + 1;
  };
  // Two units at a time: half the barriers.
  static_assert(kStages % 2 == 0);
  for (int s = 0; s < kStages - 2; ++s) {
    if (begin + s < end) fetch_weights();
  }
  grid_launch_next();
  grid_wait();
  for (int s = 0; s < kStages - 2; ++s) {
    if (begin + s < end) fetch_x();
    if (s % 2 == 1) copy_commit();
  }

  // The sum of the slices so far, [value][thread].
  float* total = reinterpret_cast<float*>(shared + kStages * kStage) + threadIdx.x;
  float acc[kTokenTiles / 2][2][2][4];  // [pair of token tiles][tile][token tile]
#pragma unroll
  for (int v = 0; v < 8 * kTokenTiles; ++v) total[v * kThreads] = (&acc[0][0][0][0])[v] = 0.0f;
  const int width = p.w.tiles * 16;
  int unit = begin, stage_at = 0;
  for (int s = 0; s < slices; ++s) {
    const int stop = slice_begin(first_slice + s + 1, p.w.units);
    for (; unit < stop; ++unit) {
      if (((unit - begin) & 1) == 0) {
        copy_wait<kStages / 2 - 2>();
        __syncthreads();
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          if (unit + kStages - 2 + s < end) {
            fetch_weights();
            fetch_x();
          }
        }
        copy_commit();
      }
      const unsigned char* stage = shared + stage_at * kStage;
      stage_at = stage_at + 1 == kStages ? 0 : stage_at + 1;
      const unsigned char* x = stage + kWeightStage;
      Fragment f[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const unsigned char* w = stage + (warp_row * 2 + r) * kUnitBytes;
        f[r].load(w, w + kCodeBytes, lane);
      }
#pragma unroll
      for (int pair = 0; pair < kTokenTiles / 2; ++pair) {
        uint4 xs[2][2];
        float2 group_sums[2][kGroups];
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          const int row = (warp_token * kTokenTiles + pair * 2 + t) * 8;
          const int flip = (g & 1) << 2;
          xs[t][0] = *reinterpret_cast<const uint4*>(x + (row + g) * 128 + (c ^ flip) * 16);
          xs[t][1] = *reinterpret_cast<const uint4*>(x + (row + g) * 128 + ((4 + c) ^ flip) * 16);
#pragma unroll
          for (int q = 0; q < kGroups; ++q) {
            group_sums[t][q] =
                *reinterpret_cast<const float2*>(x + kXStage + (q * kTokens + row + 2 * c) * 4);
          }
        }
        multiply<2, 2>(acc[pair], f, xs, group_sums);
      }
    }
    float* values = &acc[0][0][0][0];
    if (gridDim.z > 1) {
#pragma unroll
      for (int v = 0; v < 8 * kTokenTiles; ++v) {
        const int pair = v >> 4, r = (v >> 3) & 1, t = (v >> 2) & 1, i = v & 3;
        const int n = (tile + warp_row * 2 + r) * 16 + g + (i >= 2 ? 8 : 0);
        const int m = token + (warp_token * kTokenTiles + pair * 2 + t) * 8 + 2 * c + (i & 1);
        if (m < p.tokens && n < width) {
          p.partial[(static_cast<long long>(first_slice + s) * p.tokens + m) * width + n] = values[v];
        }
        values[v] = 0.0f;
      }
    } else {
#pragma unroll
      for (int v = 0; v < 8 * kTokenTiles; ++v) {
        total[v * kThreads] += values[v];
        values[v] = 0.0f;
      }
    }
  }
  if (gridDim.z > 1) return;
  const bool gated = p.epilogue == kLinearSwiGlu || p.epilogue == kLinearGeGlu;
#pragma unroll 4
  for (int v = 0; v < 8 * kTokenTiles; ++v) {
    const int pair = v >> 4, r = (v >> 3) & 1, t = (v >> 2) & 1, i = v & 3;
    const int m = token + (warp_token * kTokenTiles + pair * 2 + t) * 8 + 2 * c + (i & 1);
    const int local = g + (i >= 2 ? 8 : 0), own = tile + warp_row * 2;
    if (m >= p.tokens) continue;
    if (gated) {
      const int n = own / 2 * 16 + local;
      if (r == 0 && n < p.w.rows / 2) finish(p, n, m, total[v * kThreads], total[(v + 8) * kThreads]);
    } else {
      const int n = (own + r) * 16 + local;
      if (n < p.w.rows) finish(p, n, m, total[v * kThreads], 0.0f);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) narrow_8(const __grid_constant__ LinearArgs p) {
  narrow<2, 1, 5>(p);
}
extern "C" __global__ void __launch_bounds__(256) narrow_16(const __grid_constant__ LinearArgs p) {
  narrow<2, 2, 5>(p);
}
extern "C" __global__ void __launch_bounds__(128) wide_32(const __grid_constant__ LinearArgs p) {
  wide<4, 1, 4, 4>(p);
}
extern "C" __global__ void __launch_bounds__(128) wide_64(const __grid_constant__ LinearArgs p) {
  wide<4, 1, 8, 6>(p);
}
extern "C" __global__ void __launch_bounds__(256) wide_128(const __grid_constant__ LinearArgs p) {
  wide<4, 2, 8, 6>(p);
}

// Adds the slices of `wide` in order.
extern "C" __global__ void linear_reduce(const __grid_constant__ LinearArgs p) {
  grid_launch_next();
  grid_wait();
  const int width = p.w.tiles * 16;
  const bool gated = p.epilogue == kLinearSwiGlu || p.epilogue == kLinearGeGlu;
  const int outputs = gated ? p.w.rows / 2 : p.w.rows;
  const int n = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y;
  if (n >= outputs) return;
  const int column = gated ? n / 16 * 32 + n % 16 : n;
  float first = 0.0f, second = 0.0f;
  for (int s = 0; s < kSlices; ++s) {
    const float* row = p.partial + (static_cast<long long>(s) * p.tokens + m) * width + column;
    first += row[0];
    if (gated) second += row[16];
  }
  finish(p, n, m, first, second);
}

// Rows of the table, by the same codes.
extern "C" __global__ void embed(const __grid_constant__ EmbedArgs p) {
  grid_launch_next();
  grid_wait();
  const int t = blockIdx.x, row = p.tokens[t];
  const int tile = row >> 4, g = row & 7, second = (row >> 3) & 1;
  for (int k = threadIdx.x; k < p.cols; k += blockDim.x) {
    const int unit = k >> 6, h = (k >> 5) & 1, c = (k >> 3) & 3, j = k & 7, lane = 4 * g + c;
    const long long at = static_cast<long long>(tile) * p.w.units + unit;
    const unsigned char* codes = p.w.codes + at * kCodeBytes;
#if BODEGA_BITS == 4
    const u32 word = reinterpret_cast<const u32*>(codes)[lane * 4 + 2 * h + second];
    const int code = (word >> (4 * ((j >> 1) + 4 * (j & 1)))) & 15;
#else
    const int code = codes[512 * h + lane * 16 + second * 8 + j];
#endif
    const u16* s = reinterpret_cast<const u16*>(p.w.scales + at * kScaleBytes) +
                   ((k & 63) / BODEGA_GROUP * 8 + g) * 4 + second * 2;
    p.out[static_cast<long long>(t) * p.cols + k] =
        __fmaf_rn(static_cast<float>(code), scale_to_float(s[0]), scale_to_float(s[1])) * p.scale;
  }
}
