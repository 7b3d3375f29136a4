// y = x * W^T for one row or thousands. Compiled for one format by
//   BODEGA_BITS       4 or 8, 16 = dense
//   BODEGA_CODES      0 = whole numbers, 1 = small floats (E2M1 of 4 bits, E4M3 of 8)
//   BODEGA_GROUP      columns that share a scale: 32, 64, 128; 32 for dense weights
//   BODEGA_SCALE      0 = fp16, 1 = bf16, 2 = fp32; of dense weights the type itself
//   BODEGA_ROW_TILES  1, 2 or 4 tiles of eight rows that share one read of the weights
//   BODEGA_INPUT, BODEGA_INPUT2   type of prepared inputs: half, half2 (or float, float2)
//   BODEGA_EPILOGUE   0 store, 1 residual, 2 SwiGLU, 3 GeGLU, 4 logits
//
// A threadgroup computes 32 outputs of 8 * BODEGA_ROW_TILES rows. Its eight simdgroups take the
// groups of columns in turn, and their sums are added in order: which products meet in which order
// depends on the columns alone, so a row has the same bits whatever runs beside it.
//
// The weights of 32 outputs lie group after group, as PackedMatrix writes them: words of codes, four
// to a lane (one for each tile of eight outputs), a lane's codes being its own two elements of
// consecutive 8x8 matrices; then a scale and a bias for each output.

constant constexpr int kSimds = 8;
constant constexpr int kOutputTiles = 4;
constant constexpr int kCodesPerWord = 32 / BODEGA_BITS;
constant constexpr int kMatricesPerWord = kCodesPerWord / 2;
constant constexpr int kSteps = BODEGA_GROUP / (8 * kMatricesPerWord);
constant constexpr int kCodeBytes = BODEGA_GROUP * BODEGA_BITS * 4;
#if BODEGA_BITS == 16
constant constexpr int kGroupBytes = kCodeBytes;
#else
constant constexpr int kGroupBytes = kCodeBytes + 32 * (BODEGA_SCALE == 2 ? 8 : 4);
#endif

#if BODEGA_BITS == 16 && BODEGA_SCALE == 1
typedef float weight_t;  // bf16 reaches beyond half
typedef float2 weight2_t;
#else
typedef half weight_t;
typedef half2 weight2_t;
#endif

inline float2 unpack_scale(uint word) {  // scale, bias
#if BODEGA_SCALE == 1
  return float2(as_type<float>(word << 16), as_type<float>(word & 0xFFFF0000u));
#else
  const half2 both = as_type<half2>(word);
  return float2(float(both.x), float(both.y));
#endif
}

// Elements 2 * matrix and 2 * matrix + 1 of a word of codes.
inline weight2_t unpack(uint word, int matrix) {
#if BODEGA_BITS == 16 && BODEGA_SCALE == 1
  return float2(as_type<float>(word << 16), as_type<float>(word & 0xFFFF0000u));
#elif BODEGA_BITS == 16
  return as_type<half2>(word);
#else
  const uint both = word >> (2 * matrix * BODEGA_BITS);
  return half2(code_value(both), code_value(both >> BODEGA_BITS));
#endif
}

// Two neighbouring rows of column k of a block of `interleave` rows.
inline BODEGA_INPUT2 load_inputs(device const BODEGA_INPUT* block, int k, int row, int interleave) {
  if (row >= interleave) return BODEGA_INPUT2(BODEGA_INPUT(0.0f), BODEGA_INPUT(0.0f));
  if (interleave == 1) return BODEGA_INPUT2(block[k], BODEGA_INPUT(0.0f));
  return ((device const BODEGA_INPUT2*)(block + (k * interleave + row)))[0];
}

// --- the inputs, once for all outputs ------------------------------------------------------------

// Row group.x: norm, rounding, and the sum of every group of columns. One threadgroup of 256 a row.
kernel void prepare_rows(constant PrepareParams& p [[buffer(0)]],
                         device const float* x [[buffer(1)]],
                         device const int* index [[buffer(2)]],
                         device const float* weight [[buffer(3)]],
                         device BODEGA_INPUT* prepared [[buffer(4)]],
                         device float* sums [[buffer(5)]],
                         uint3 group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_index_in_threadgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float squares[kSimds];
  const int row = int(group.x);
  const bool valid = row < p.rows;
  int from = row;
  if (valid && p.has_rows != 0) from = index[row];
  device const float* in = x + long(from) * p.cols;
  float scale = 1.0f;
  if (valid && p.has_norm != 0) {
    float own = 0.0f;
    for (int k = int(thread_index); k < p.cols; k += 256) own = fma(in[k], in[k], own);
    own = ordered_sum(own);
    if (lane == 0) squares[simd] = own;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float total = 0.0f;
    for (int s = 0; s < kSimds; ++s) total += squares[s];
    scale = 1.0f / precise::sqrt(total / float(p.cols) + p.eps);
  }
  const int block = row / p.interleave;
  const int inside = row % p.interleave;
  device BODEGA_INPUT* out = prepared + long(block) * p.cols * p.interleave + inside;
  const int groups = p.cols / BODEGA_GROUP;
  device float* out_sums = sums + long(block) * groups * p.interleave + inside;
  for (int g = int(simd); g < groups; g += kSimds) {
    float sum = 0.0f;
    for (int i = int(lane); i < BODEGA_GROUP; i += 32) {
      const int k = g * BODEGA_GROUP + i;
      float value = 0.0f;
      if (valid) value = in[k] * scale;
      if (valid && p.has_norm != 0) value = value * (weight[k] + p.weight_offset);
      const BODEGA_INPUT rounded = BODEGA_INPUT(value);
      out[long(k) * p.interleave] = rounded;
      sum += float(rounded);
    }
    sum = ordered_sum(sum);
    if (lane == 0) out_sums[long(g) * p.interleave] = sum;
  }
}

// --- the product ---------------------------------------------------------------------------------

inline float activate(float gate) {
#if BODEGA_EPILOGUE == 3
  const float inner = 0.7978845608f * fma(0.044715f, gate * gate * gate, gate);
  return 0.5f * gate * (1.0f + precise::tanh(inner));
#else
  return gate / (1.0f + precise::exp(-gate));
#endif
}

// Sum of the simdgroups' parts of one element, in order.
inline float add_parts(threadgroup const float* parts, int output, int row) {
  float sum = 0.0f;
  for (int s = 0; s < kSimds; ++s) sum += parts[s * 256 + output * 8 + row];
  return sum;
}

inline void store_output(constant LinearParams& p, threadgroup const float* parts,
                         device const float* bias, device float* out, int first, int output,
                         int row, int out_row) {
#if BODEGA_EPILOGUE == 2 || BODEGA_EPILOGUE == 3
  // Outputs 0..15 of the tile are gates, 16..31 what they let through.
  const int n = first / 2 + output;
  if (output >= 16 || n >= p.outputs || out_row >= p.rows) return;
  float gate = add_parts(parts, output, row);
  float up = add_parts(parts, output + 16, row);
  if (p.has_bias != 0) {
    gate += bias[n];
    up += bias[p.outputs + n];
  }
  out[long(out_row) * p.out_stride + p.out_column + n] = activate(gate) * up;
#else
  const int n = first + output;
  if (n >= p.outputs || out_row >= p.rows) return;
  float y = add_parts(parts, output, row);
  if (p.has_bias != 0) y += bias[n];
  const long at = long(out_row) * p.out_stride + p.out_column + n;
#if BODEGA_EPILOGUE == 1
  y += out[at];
#elif BODEGA_EPILOGUE == 4
  y *= p.scale;
  if (p.soft_cap > 0.0f) y = p.soft_cap * precise::tanh(y / p.soft_cap);
#endif
  out[at] = y;
#endif
}

// Threadgroup (x, y): outputs 32x.. of rows 8 * BODEGA_ROW_TILES * y.., by 256 threads.
kernel void quant_linear(constant LinearParams& p [[buffer(0)]],
                         device const uchar* weights [[buffer(1)]],
                         device const BODEGA_INPUT* prepared [[buffer(2)]],
                         device const float* sums [[buffer(3)]],
                         device const float* bias [[buffer(4)]],
                         device float* out [[buffer(5)]],
                         uint3 group [[threadgroup_position_in_grid]],
                         uint thread_index [[thread_index_in_threadgroup]],
                         uint simd [[simdgroup_index_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float parts[kSimds * 256];
  const int groups = p.cols / BODEGA_GROUP;
  const int element_row = fragment_row_of(lane);
  const int element_column = fragment_column_of(lane);
  const int blocks = (p.rows + p.interleave - 1) / p.interleave;
  const int first_block = int(group.y) * BODEGA_ROW_TILES;
  device const uchar* tiles = weights + long(group.x) * groups * kGroupBytes;

  simdgroup_float8x8 total[kOutputTiles][BODEGA_ROW_TILES];
  for (int t = 0; t < kOutputTiles; ++t) {
    for (int m = 0; m < BODEGA_ROW_TILES; ++m) total[t][m] = zero_matrix();
  }
  for (int g = int(simd); g < groups; g += kSimds) {
    device const uchar* tile = tiles + long(g) * kGroupBytes;
    simdgroup_float8x8 sum[kOutputTiles][BODEGA_ROW_TILES];
    for (int t = 0; t < kOutputTiles; ++t) {
      for (int m = 0; m < BODEGA_ROW_TILES; ++m) sum[t][m] = zero_matrix();
    }
    for (int step = 0; step < kSteps; ++step) {
      const uint4 words = ((device const uint4*)tile)[step * 32 + int(lane)];
      for (int j = 0; j < kMatricesPerWord; ++j) {
        const int k = g * BODEGA_GROUP + (step * kMatricesPerWord + j) * 8 + element_row;
        simdgroup_matrix<BODEGA_INPUT, 8, 8> x[BODEGA_ROW_TILES];
        for (int m = 0; m < BODEGA_ROW_TILES; ++m) {
          const int block = first_block + m;
          const int rows = block < blocks ? p.interleave : 0;
          const BODEGA_INPUT2 two =
              load_inputs(prepared + long(block) * p.cols * p.interleave, k, element_column, rows);
          set_elements(x[m], two.x, two.y);
        }
        for (int t = 0; t < kOutputTiles; ++t) {
          simdgroup_matrix<weight_t, 8, 8> w;
          const weight2_t two = unpack(words[t], j);
          set_elements(w, two.x, two.y);
          for (int m = 0; m < BODEGA_ROW_TILES; ++m) {
            simdgroup_multiply_accumulate(sum[t][m], w, x[m], sum[t][m]);
          }
        }
      }
    }
    // The group's scale and bias: W = scale * code + bias, so y gains scale * sum + bias * sum(x).
    for (int t = 0; t < kOutputTiles; ++t) {
#if BODEGA_BITS == 16
      const float2 scale = float2(1.0f, 0.0f);
#elif BODEGA_SCALE == 2
      const float2 scale =
          ((device const float2*)(tile + kCodeBytes))[element_row * kOutputTiles + t];
#else
      const float2 scale = unpack_scale(
          ((device const uint*)(tile + kCodeBytes))[element_row * kOutputTiles + t]);
#endif
      for (int m = 0; m < BODEGA_ROW_TILES; ++m) {
        for (int e = 0; e < 2; ++e) {
          float value = fma(sum[t][m].thread_elements()[e], scale.x, total[t][m].thread_elements()[e]);
#if BODEGA_BITS != 16
          const int block = first_block + m;
          const int row = element_column + e;
          if (block < blocks && row < p.interleave) {
            const float input_sum = sums[(long(block) * groups + g) * p.interleave + row];
            value = fma(scale.y, input_sum, value);
          }
#endif
          total[t][m].thread_elements()[e] = value;
        }
      }
    }
  }
  for (int m = 0; m < BODEGA_ROW_TILES; ++m) {
    for (int t = 0; t < kOutputTiles; ++t) {
      for (int e = 0; e < 2; ++e) {
        parts[int(simd) * 256 + (t * 8 + element_row) * 8 + element_column + e] =
            total[t][m].thread_elements()[e];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int row = int(thread_index) / 32;
    store_output(p, parts, bias, out, int(group.x) * 32, int(thread_index) % 32, row,
                 (first_block + m) * 8 + row);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
