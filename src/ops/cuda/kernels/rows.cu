// What runs over rows between the products: norm and fp16 inputs, rotation and the cache's writes.

constexpr float kCodeUnit = 5.9604644775390625e-8f;  // 2^-24: what a masked code counts in
constexpr int kPrepareThreads = 512;
constexpr int kPrepareKept = 8;  // groups of four columns a thread keeps in registers

// Sum of `squares` and maximum of `largest` over the block, in a fixed order.
BODEGA_INLINE void block_reduce(float& squares, float& largest) {
  __shared__ float parts[2][kPrepareThreads / 32];
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    squares += __shfl_xor_sync(~0u, squares, offset);
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
  }
  const int lane = threadIdx.x & 31;
  if (lane == 0) {
    parts[0][threadIdx.x >> 5] = squares;
    parts[1][threadIdx.x >> 5] = largest;
  }
  __syncthreads();
  squares = lane < kPrepareThreads / 32 ? parts[0][lane] : 0.0f;
  largest = lane < kPrepareThreads / 32 ? parts[1][lane] : 0.0f;
#pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) {
    squares += __shfl_xor_sync(~0u, squares, offset);
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
  }
}

// fp16 inputs of a product: norm, then a power of two of the row so that no value overflows and small
// ones keep their bits; sums of each group of the rounded values. One block a row.
extern "C" __global__ void __launch_bounds__(kPrepareThreads)
    prepare(const __grid_constant__ PrepareArgs p) {
  constexpr int kStep = kPrepareThreads * 4;
  grid_launch_next();
  const bool norm = p.norm != nullptr;
  float4 kept[kPrepareKept], weight[kPrepareKept];
#pragma unroll
  for (int i = 0; i < kPrepareKept; ++i) {
    const int k = i * kStep + threadIdx.x * 4;
    weight[i] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
    if (norm && k < p.cols) weight[i] = *reinterpret_cast<const float4*>(p.norm + k);
  }
  grid_wait();
  const int m = blockIdx.x;
  const float* in = p.in + static_cast<long long>(p.rows != nullptr ? p.rows[m] : m) * p.in_stride;
  const float offset = norm ? p.norm_offset : 0.0f;
  auto load = [&](int k) {
    return k < p.cols ? *reinterpret_cast<const float4*>(in + k) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  };
  auto scaled = [&](float4 v, float4 w) {
    return make_float4(v.x * (w.x + offset), v.y * (w.y + offset), v.z * (w.z + offset),
                       v.w * (w.w + offset));
  };
  auto late_weight = [&](int k) {
    return norm && k < p.cols ? *reinterpret_cast<const float4*>(p.norm + k)
                              : make_float4(1.0f, 1.0f, 1.0f, 1.0f);
  };
  float squares = 0.0f, largest = 0.0f;
  auto gather = [&](float4 v, float4 w) {
    squares = __fmaf_rn(v.x, v.x, squares);
    squares = __fmaf_rn(v.y, v.y, squares);
    squares = __fmaf_rn(v.z, v.z, squares);
    squares = __fmaf_rn(v.w, v.w, squares);
    const float4 y = scaled(v, w);
    largest = fmaxf(fmaxf(largest, fmaxf(fabsf(y.x), fabsf(y.y))), fmaxf(fabsf(y.z), fabsf(y.w)));
  };
#pragma unroll
  for (int i = 0; i < kPrepareKept; ++i) kept[i] = load(i * kStep + threadIdx.x * 4);
#pragma unroll
  for (int i = 0; i < kPrepareKept; ++i) gather(kept[i], weight[i]);
  for (int k = kPrepareKept * kStep + threadIdx.x * 4; k < p.cols; k += kStep) gather(load(k), late_weight(k));
  block_reduce(squares, largest);
  const float factor = norm ? 1.0f / sqrtf(squares / static_cast<float>(p.cols) + p.eps) : 1.0f;
  largest *= factor;
  // Multiplied by 2^(14 - exponent), the largest lies in [2^14, 2^15).
  const int exponent = static_cast<int>((__float_as_uint(largest) >> 23) & 255) - 127;
  const int power = max(-100, min(100, largest > 0.0f ? 14 - exponent : 0));
  const float up = __uint_as_float(static_cast<u32>(127 + power) << 23);
  if (threadIdx.x == 0) p.row_scale[m] = __uint_as_float(static_cast<u32>(127 + 24 - power) << 23);
  u16* x = p.x + static_cast<long long>(m) * p.x_stride;
  const int lanes = p.group / 4;  // of a group: 8 or 16
  const float upper = p.nibbles ? 0.0625f : 1.0f;
  auto store = [&](int k, float4 v, float4 w) {
    const float4 y = scaled(v, w);
    const u32 low = pack_half2(y.x * factor * up, y.y * factor * up);
    const u32 high = pack_half2(y.z * factor * up * upper, y.w * factor * up * upper);
    float sum = (half_to_float(static_cast<u16>(low)) + half_to_float(static_cast<u16>(low >> 16))) +
                (half_to_float(static_cast<u16>(high)) + half_to_float(static_cast<u16>(high >> 16))) *
                    (p.nibbles ? 16.0f : 1.0f);
    for (int step = 1; step < lanes; step <<= 1) sum += __shfl_xor_sync(~0u, sum, step);
    if (k < p.x_stride) {
      *reinterpret_cast<uint2*>(x + k) = make_uint2(low, high);
      if (k % p.group == 0) p.sums[static_cast<long long>(k / p.group) * p.sum_stride + m] = sum * kCodeUnit;
    }
  };
#pragma unroll
  for (int i = 0; i < kPrepareKept; ++i) {
    if (i * kStep < p.x_stride) store(i * kStep + threadIdx.x * 4, kept[i], weight[i]);
  }
  for (int k = kPrepareKept * kStep; k < p.x_stride; k += kStep) {
    const int own = k + threadIdx.x * 4;
    store(own, load(own), late_weight(own));
  }
}

// cos and sin of every row's angles, shared by all layers that turn alike.
extern "C" __global__ void rotary_table(const __grid_constant__ RotaryArgs p) {
  grid_launch_next();
  grid_wait();
  const int t = blockIdx.x;
  for (int i = threadIdx.x; i < p.half; i += blockDim.x) {
    float sine, cosine;
    sincosf(static_cast<float>(p.positions[t]) * p.inv_freq[i], &sine, &cosine);
    float2* out = reinterpret_cast<float2*>(p.table) + static_cast<long long>(t) * p.half + i;
    *out = make_float2(cosine * p.scale, sine * p.scale);
  }
}

// A warp a head of q, k or v.
extern "C" __global__ void rope_and_cache_write(const __grid_constant__ RopeArgs p) {
  grid_launch_next();
  grid_wait();
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int t = blockIdx.x, head = blockIdx.y * (blockDim.x >> 5) + warp;
  const int heads = p.heads + 2 * p.kv_heads, d = p.head_dim;
  if (head >= heads) return;
  float* x = p.qkv + (static_cast<long long>(t) * heads + head) * d;
  u16* block = reinterpret_cast<u16*>(p.row_blocks[t]);
  const int token = p.positions[t] % 16;
  if (head >= p.heads + p.kv_heads) {
    u16* out = block + p.v_offset_in_block +
               (static_cast<long long>(head - p.heads - p.kv_heads) * 16 + token) * d;
    for (int i = lane; i < d; i += 32) out[i] = float_to_half(x[i]);
    return;
  }
  const bool key = head >= p.heads;
  const float* norm = key ? p.k_norm : p.q_norm;
  float factor = 1.0f;
  const float offset = key ? p.k_offset : p.q_offset;
  if (norm != nullptr) {
    float squares = 0.0f;
    for (int i = lane; i < d; i += 32) squares = __fmaf_rn(x[i], x[i], squares);
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) squares += __shfl_xor_sync(~0u, squares, step);
    factor = 1.0f / sqrtf(squares / static_cast<float>(d) + (key ? p.k_eps : p.q_eps));
  }
  auto value = [&](int i) { return norm == nullptr ? x[i] : x[i] * factor * (norm[i] + offset); };
  u16* out = block + p.k_offset_in_block + (static_cast<long long>(head - p.heads) * 16 + token) * d;
  auto store = [&](int i, float v) {
    x[i] = v;
    if (key) out[i] = float_to_half(v);
  };
  for (int i = lane; i < p.rotary_half; i += 32) {
    const int a = p.interleaved ? 2 * i : i, b = p.interleaved ? 2 * i + 1 : i + p.rotary_half;
    const float2 angle =
        reinterpret_cast<const float2*>(p.table)[static_cast<long long>(t) * p.rotary_half + i];
    const float va = value(a), vb = value(b);
    store(a, __fmaf_rn(va, angle.x, -(vb * angle.y)));
    store(b, __fmaf_rn(vb, angle.x, va * angle.y));
  }
  for (int i = 2 * p.rotary_half + lane; i < d; i += 32) store(i, value(i));
}
