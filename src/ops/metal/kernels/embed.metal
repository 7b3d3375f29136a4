// Rows of the packed token table (or tied head), back as fp32. Compiled with BODEGA_BITS,
// BODEGA_CODES, BODEGA_GROUP and BODEGA_SCALE as quant_linear.metal, whose layout this reads.

#if BODEGA_BITS == 16
constant constexpr int kGroupBytes = BODEGA_GROUP * BODEGA_BITS * 4;
#else
constant constexpr int kGroupBytes =
    BODEGA_GROUP * BODEGA_BITS * 4 + 32 * (BODEGA_SCALE == 2 ? 8 : 4);
#endif
constant constexpr int kMatricesPerWord = 16 / BODEGA_BITS;

inline float narrow_value(uint bits) {
#if BODEGA_SCALE == 1
  return as_type<float>(bits << 16);
#else
  return float(as_type<half2>(bits).x);
#endif
}

// Threadgroup x: token x, by 256 threads.
kernel void embed(constant EmbedParams& p [[buffer(0)]],
                  device const uchar* table [[buffer(1)]],
                  device const int* tokens [[buffer(2)]],
                  device float* out [[buffer(3)]],
                  uint3 group [[threadgroup_position_in_grid]],
                  uint thread_index [[thread_index_in_threadgroup]],
                  uint simd [[simdgroup_index_in_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]]) {
  const int token = tokens[group.x];
  const int output = token % 32;
  const int groups = p.cols / BODEGA_GROUP;
  device const uchar* block = table + long(token / 32) * groups * kGroupBytes;
  for (int col = int(thread_index); col < p.cols; col += 256) {
    device const uchar* tile = block + (col / BODEGA_GROUP) * kGroupBytes;
    const int k = col % BODEGA_GROUP;
    const int matrix = k / 8;
    const int row = output % 8;
    const int owner = row / 4 * 16 + k % 8 / 4 * 8 + row % 4 * 2 + k % 4 / 2;
    const int at = ((matrix / kMatricesPerWord) * 32 + owner) * 4 + output / 8;
    const uint word = ((device const uint*)tile)[at];
    const int shift = (2 * (matrix % kMatricesPerWord) + k % 2) * BODEGA_BITS;
#if BODEGA_BITS == 16
    const float value = narrow_value((word >> shift) & 0xFFFFu);
#else
    const int pair = row * 4 + output / 8;
#if BODEGA_SCALE == 2
    const float2 scale = ((device const float2*)(tile + BODEGA_GROUP * BODEGA_BITS * 4))[pair];
#else
    const uint both = ((device const uint*)(tile + BODEGA_GROUP * BODEGA_BITS * 4))[pair];
    const float2 scale = float2(narrow_value(both & 0xFFFFu), narrow_value(both >> 16));
#endif
    const float value = fma(float(code_value(word >> shift)), scale.x, scale.y);
#endif
    out[long(group.x) * p.cols + col] = value * p.scale;
  }
}
