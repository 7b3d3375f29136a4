// Norms and rotates the heads of one row by its absolute position, q in place, and writes k and v to
// the row's block of the cache in fp16. Compiled with BODEGA_HEAD_DIM (a multiple of 32, at most 256).

constant constexpr int kOwn = BODEGA_HEAD_DIM / 32;  // elements a lane

// The slab of a block; a pool has at most four.
inline device half* slab_of(device half* slab0, device half* slab1, device half* slab2,
                            device half* slab3, int slab) {
  if (slab == 0) return slab0;
  if (slab == 1) return slab1;
  return slab == 2 ? slab2 : slab3;
}

// Threadgroup (x, y): head x of row y (queries, then keys, then values), by one simdgroup.
kernel void rope_and_cache_write(constant RopeParams& p [[buffer(0)]],
                                 device float* qkv [[buffer(1)]],
                                 device const float* inv_freq [[buffer(2)]],
                                 device const float* q_norm [[buffer(3)]],
                                 device const float* k_norm [[buffer(4)]],
                                 device const RowPlace* places [[buffer(5)]],
                                 device const BlockPlace* blocks [[buffer(6)]],
                                 device half* slab0 [[buffer(7)]],
                                 device half* slab1 [[buffer(8)]],
                                 device half* slab2 [[buffer(9)]],
                                 device half* slab3 [[buffer(10)]],
                                 uint3 group [[threadgroup_position_in_grid]],
                                 uint thread_index [[thread_index_in_threadgroup]],
                                 uint simd [[simdgroup_index_in_threadgroup]],
                                 uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float head[BODEGA_HEAD_DIM];
  const int number = int(group.x);
  const bool query = number < p.heads;
  const bool value = number >= p.heads + p.kv_heads;
  const int stride = (p.heads + 2 * p.kv_heads) * BODEGA_HEAD_DIM;
  device float* x = qkv + long(group.y) * stride + number * BODEGA_HEAD_DIM;
  const RowPlace place = places[group.y];

  float scale = 1.0f;
  const bool normed = !value && (query ? p.has_q_norm : p.has_k_norm) != 0;
  if (normed) {
    float squares = 0.0f;
    for (int i = 0; i < kOwn; ++i) {
      const float own = x[int(lane) + 32 * i];
      squares = fma(own, own, squares);
    }
    squares = ordered_sum(squares);
    scale = 1.0f / precise::sqrt(squares / float(BODEGA_HEAD_DIM) + (query ? p.q_eps : p.k_eps));
  }
  for (int i = 0; i < kOwn; ++i) {
    const int d = int(lane) + 32 * i;
    float own = x[d];
    if (normed) {
      own *= scale;
      own *= query ? q_norm[d] + p.q_offset : k_norm[d] + p.k_offset;
    }
    head[d] = own;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);

  float turned[kOwn];
  for (int i = 0; i < kOwn; ++i) {
    const int d = int(lane) + 32 * i;
    turned[i] = head[d];
    if (value || d >= 2 * p.rotary_half) continue;
    const int pair = p.interleaved != 0 ? d / 2 : d % p.rotary_half;
    const bool second = p.interleaved != 0 ? d % 2 == 1 : d >= p.rotary_half;
    const float a = head[p.interleaved != 0 ? 2 * pair : pair];
    const float b = head[p.interleaved != 0 ? 2 * pair + 1 : pair + p.rotary_half];
    const float angle = float(place.position) * inv_freq[pair];
    const float c = precise::cos(angle) * p.rotary_scale;
    const float s = precise::sin(angle) * p.rotary_scale;
    turned[i] = second ? b * c + a * s : a * c - b * s;
  }
  if (query) {
    for (int i = 0; i < kOwn; ++i) x[int(lane) + 32 * i] = turned[i];
    return;
  }
  if (!value) {  // the twin leaves the rotated keys in the row as well
    for (int i = 0; i < kOwn; ++i) x[int(lane) + 32 * i] = turned[i];
  }
  const BlockPlace block = blocks[place.block_begin + place.position / 16];
  const int kv_head = number - p.heads - (value ? p.kv_heads : 0);
  // Values lie by token, keys by dimension.
  const int token = place.position % 16;
  const int offset = (value ? p.v_offset_elements + token * BODEGA_HEAD_DIM
                            : p.k_offset_elements + token) +
                     kv_head * 16 * BODEGA_HEAD_DIM;
  const int stride_d = value ? 1 : 16;
  device half* out = slab_of(slab0, slab1, slab2, slab3, block.slab) +
                     (long(block.offset) * p.block_elements + offset);
  for (int i = 0; i < kOwn; ++i) out[(int(lane) + 32 * i) * stride_d] = half(turned[i]);
}
