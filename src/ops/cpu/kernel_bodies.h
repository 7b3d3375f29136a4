#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "ops/cpu/kernels.h"

// Kernel bodies over a vector type V (vec_*.h). Included by one kernels_<isa>.cpp an instruction
// set; everything is in an unnamed namespace so that the linker never mixes instruction sets.
namespace bodega::ops::cpu {
namespace {

template <int N, class F>
inline __attribute__((always_inline)) void unroll(F f) {
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    (f(std::integral_constant<int, Is>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}

inline std::int32_t load_pair(const std::int16_t* p) {
  std::int32_t pair;
  std::memcpy(&pair, p, sizeof pair);
  return pair;
}

template <class V>
inline typename V::F exp_vec(typename V::F x) {
  // Cephes expf: x = n ln2 + r, polynomial in r; below -87 the result is zero to fp32's normals.
  using F = typename V::F;
  x = V::max(V::min(x, V::set1(88.0F)), V::set1(-87.0F));
  const F n = V::round(V::mul(x, V::set1(1.44269504088896341F)));
  F r = V::fma(n, V::set1(-0.693359375F), x);
  r = V::fma(n, V::set1(2.12194440e-4F), r);
  F p = V::set1(1.9875691500e-4F);
  p = V::fma(p, r, V::set1(1.3981999507e-3F));
  p = V::fma(p, r, V::set1(8.3334519073e-3F));
  p = V::fma(p, r, V::set1(4.1665795894e-2F));
  p = V::fma(p, r, V::set1(1.6666665459e-1F));
  p = V::fma(p, r, V::set1(5.0000001201e-1F));
  p = V::fma(V::mul(r, r), p, V::add(r, V::set1(1.0F)));
  return V::scale2(p, n);
}

template <class V>
inline typename V::F tanh_vec(typename V::F x) {
  using F = typename V::F;
  const F clamped = V::max(V::min(x, V::set1(20.0F)), V::set1(-20.0F));
  const F e = exp_vec<V>(V::add(clamped, clamped));
  return V::div(V::sub(e, V::set1(1.0F)), V::add(e, V::set1(1.0F)));
}

template <class V>
void rms_norm(const float* x, const float* weight, float eps, float offset, int cols, float* out) {
  using F = typename V::F;
  F squares = V::set1(0.0F);
  for (int i = 0; i < cols; i += V::kWidth) {
    const F v = V::load(x + i);
    squares = V::fma(v, v, squares);
  }
  const float mean = V::sum(squares) / static_cast<float>(cols);
  const F scale = V::set1(1.0F / __builtin_sqrtf(mean + eps));
  const F shift = V::set1(offset);
  for (int i = 0; i < cols; i += V::kWidth) {
    const F w = V::add(V::load(weight + i), shift);
    V::store(out + i, V::mul(V::mul(V::load(x + i), scale), w));
  }
}

template <class V>
void quantize(const float* x, const QuantizedRows& to, int row) {
  using F = typename V::F;
  const int step = to.interleave;
  const std::ptrdiff_t block = static_cast<std::ptrdiff_t>(row / step) * to.cols * step;
  std::int16_t* q = to.q + block + 2 * (row % step);
  const std::ptrdiff_t first = block / kGroup + row % step;
  for (int g = 0; g < to.cols / kGroup; ++g) {
    const float* in = x + g * kGroup;
    F largest = V::set1(0.0F);
    for (int i = 0; i < kGroup; i += V::kWidth) largest = V::max(largest, V::abs(V::load(in + i)));
    const float amax = V::max_lane(largest);
    const float inverse = amax > 0.0F ? 32767.0F / amax : 0.0F;
    std::int16_t codes[kGroup];
    for (int i = 0; i < kGroup; i += V::kWidth) {
      V::store_int16(codes + i, V::round(V::mul(V::load(in + i), V::set1(inverse))));
    }
    std::int32_t total = 0;
    for (int i = 0; i < kGroup; ++i) total += codes[i];
    for (int i = 0; i < kGroup; i += 2, q += 2 * step) std::memcpy(q, codes + i, 4);
    const std::ptrdiff_t at = first + static_cast<std::ptrdiff_t>(g) * step;
    to.scale[at] = amax / 32767.0F;
    to.isum[at] = total;
    to.sum[at] = to.scale[at] * static_cast<float>(total);
  }
}

// --- quantised linear ------------------------------------------------------------------------

// One bit plane of a block of 32 columns: field p of the plane holds the codes of columns 2p and
// 2p+1 in the low and the high half of each lane.
template <class V, int Bits, int Pair>
inline __attribute__((always_inline)) typename V::I plane(const std::uint8_t* words) {
  constexpr int kFields = 16 / Bits;  // pairs in one 32-bit word
  constexpr int kField = Pair % kFields;
  const auto shifted = V::template shift_right16<Bits * kField>(
      V::load_int(words + (Pair / kFields) * V::kWidth * 4));
  if constexpr (kField == kFields - 1) return shifted;
  return V::template and16<(1 << Bits) - 1>(shifted);
}

// Codes of columns 2*Pair and 2*Pair+1 as int16 pairs. 3, 5 and 6 bits lie in two planes.
template <class V, int Bits, int Pair>
inline __attribute__((always_inline)) typename V::I unpack(const std::uint8_t* words) {
  constexpr int kLow = Bits == 3 ? 2 : (Bits == 5 || Bits == 6) ? 4 : Bits;
  const typename V::I low = plane<V, kLow, Pair>(words);
  if constexpr (kLow == Bits) {
    return low;
  } else {
    const auto high = plane<V, Bits - kLow, Pair>(words + kLow * V::kWidth * 4);
    return V::or_int(low, V::template shift_left16<kLow>(high));
  }
}

template <class V>
inline typename V::F load_scales(const std::uint8_t* p, bool wide) {
  return wide ? V::load(reinterpret_cast<const float*>(p))
              : V::load_f16(reinterpret_cast<const std::uint16_t*>(p));
}

// The end of a block of 32 columns: integer sums become fp32 and join the row's total.
template <class V, bool Symmetric>
inline __attribute__((always_inline)) typename V::F close_block(
    typename V::F acc, typename V::I dot, typename V::F scale, typename V::F bias,
    std::int32_t offset, const QuantizedRows& x, std::ptrdiff_t at) {
  if constexpr (Symmetric) dot = V::sub_int(dot, V::set1_int(x.isum[at] * offset));
  acc = V::fma(V::to_float(dot), V::mul(scale, V::set1(x.scale[at])), acc);
  if constexpr (!Symmetric) acc = V::fma(bias, V::set1(x.sum[at]), acc);
  return acc;
}

inline constexpr int kPrefetchBytes = 1024;  // ahead of a packed tile, whose neighbour follows it

// Few rows straight from the packed tile: each code is unpacked once for all of them. Rows is the
// interleave; only the first `rows` are wanted.
template <class V, int Bits, bool Symmetric, int Rows>
void linear_direct(const PackedView& w, const std::uint8_t* tile, const QuantizedRows& x, int rows,
                   float* out) {
  using F = typename V::F;
  using I = typename V::I;
  constexpr int kBlockBytes = Bits * 4 * V::kWidth;
  const int groups = w.cols / w.group_size;
  const int blocks = w.group_size / kGroup;
  const std::size_t scale_bytes = static_cast<std::size_t>(V::kWidth) * (w.wide_scales ? 4 : 2);
  const std::int16_t* q = x.q;
  F acc[Rows];
  for (int m = 0; m < Rows; ++m) acc[m] = V::set1(0.0F);
  std::ptrdiff_t at = 0;
  for (int g = 0; g < groups; ++g) {
    const std::uint8_t* scales = tile + static_cast<std::size_t>(blocks) * kBlockBytes;
    const F scale = load_scales<V>(scales, w.wide_scales);
    F bias = V::set1(0.0F);
    if constexpr (!Symmetric) bias = load_scales<V>(scales + scale_bytes, w.wide_scales);
    for (int b = 0; b < blocks; ++b, tile += kBlockBytes, q += kGroup * Rows, at += Rows) {
      // A lone row waits for memory: the hardware's own prefetch reaches half of the bandwidth.
      for (int line = 0; line < kBlockBytes; line += 64) {
        __builtin_prefetch(tile + kPrefetchBytes + line);
      }
      I dot[Rows];
      for (int m = 0; m < Rows; ++m) dot[m] = V::zero();
      unroll<kGroup / 2>([&](auto pair) __attribute__((always_inline)) {
        const I codes = unpack<V, Bits, pair.value>(tile);
        for (int m = 0; m < Rows; ++m) {
          dot[m] = V::dot_pair(dot[m], codes, load_pair(q + 2 * (pair.value * Rows + m)));
          V::pin(dot[m]);
        }
      });
      for (int m = 0; m < Rows; ++m) {
        acc[m] = close_block<V, Symmetric>(acc[m], dot[m], scale, bias, 1 << (Bits - 1), x, at + m);
      }
    }
    tile = scales + scale_bytes * (Symmetric ? 1 : 2);
  }
  for (int m = 0; m < Rows; ++m) {
    if (m < rows) V::store(out + m * 2 * V::kWidth, acc[m]);
  }
}

inline constexpr int kPanelBlocks = 8;  // 256 columns of two tiles stay in the first-level cache

// Two tiles unpacked to int16 pairs, for many rows.
template <class V>
struct Panel {
  typename V::I codes[kPanelBlocks][kGroup / 2][2];
  typename V::F scale[kPanelBlocks][2];
  typename V::F bias[kPanelBlocks][2];
  std::int32_t offset;  // of symmetric codes
};

template <class V, int Bits, bool Symmetric>
void fill_panel(const PackedView& w, const std::uint8_t* tile, int begin, int count, int side,
                Panel<V>& panel) {
  constexpr int kBlockBytes = Bits * 4 * V::kWidth;
  const int per_group = w.group_size / kGroup;
  const std::size_t scale_bytes = static_cast<std::size_t>(V::kWidth) * (w.wide_scales ? 4 : 2);
  const std::size_t group_bytes =
      static_cast<std::size_t>(per_group) * kBlockBytes + scale_bytes * (Symmetric ? 1 : 2);
  for (int i = 0; i < count; ++i) {
    const int block = begin + i;
    const std::uint8_t* group = tile + static_cast<std::size_t>(block / per_group) * group_bytes;
    const std::uint8_t* codes = group + static_cast<std::size_t>(block % per_group) * kBlockBytes;
    const std::uint8_t* scales = group + static_cast<std::size_t>(per_group) * kBlockBytes;
    unroll<kGroup / 2>(
        [&](auto pair) { panel.codes[i][pair.value][side] = unpack<V, Bits, pair.value>(codes); });
    panel.scale[i][side] = load_scales<V>(scales, w.wide_scales);
    if constexpr (!Symmetric) {
      panel.bias[i][side] = load_scales<V>(scales + scale_bytes, w.wide_scales);
    }
  }
}

// Rows [row, row + Rows) of one row block; `begin` is the panel's first block of columns.
template <class V, bool Symmetric, int Rows, int Tiles>
void panel_rows(const Panel<V>& panel, int begin, int count, const QuantizedRows& x, int row,
                float* out) {
  using F = typename V::F;
  using I = typename V::I;
  const std::ptrdiff_t base = static_cast<std::ptrdiff_t>(row / kRowBlock) * x.cols * kRowBlock;
  const std::int16_t* q =
      x.q + base + static_cast<std::ptrdiff_t>(begin) * kGroup * kRowBlock + 2 * (row % kRowBlock);
  std::ptrdiff_t at =
      base / kGroup + static_cast<std::ptrdiff_t>(begin) * kRowBlock + row % kRowBlock;
  F acc[Rows][Tiles];
  for (int m = 0; m < Rows; ++m) {
    for (int t = 0; t < Tiles; ++t) {
      acc[m][t] = begin == 0 ? V::set1(0.0F) : V::load(out + ((row + m) * 2 + t) * V::kWidth);
    }
  }
  for (int i = 0; i < count; ++i, q += kGroup * kRowBlock, at += kRowBlock) {
    I dot[Rows][Tiles];
    for (int m = 0; m < Rows; ++m) {
      for (int t = 0; t < Tiles; ++t) dot[m][t] = V::zero();
    }
    // Unrolled: around a loop g++ copies every accumulator of a destructive dot product.
    unroll<kGroup / 2>([&](auto pair) __attribute__((always_inline)) {
      I codes[Tiles];
      for (int t = 0; t < Tiles; ++t) {
        codes[t] = panel.codes[i][pair.value][t];
        V::pin(codes[t]);  // in a register, not read again for every row
      }
      for (int m = 0; m < Rows; ++m) {
        const std::int32_t xs = load_pair(q + 2 * (pair.value * kRowBlock + m));
        for (int t = 0; t < Tiles; ++t) {
          dot[m][t] = V::dot_pair(dot[m][t], codes[t], xs);
          V::pin(dot[m][t]);
        }
      }
    });
    for (int m = 0; m < Rows; ++m) {
      for (int t = 0; t < Tiles; ++t) {
        acc[m][t] = close_block<V, Symmetric>(acc[m][t], dot[m][t], panel.scale[i][t],
                                              panel.bias[i][t], panel.offset, x, at + m);
      }
    }
  }
  for (int m = 0; m < Rows; ++m) {
    for (int t = 0; t < Tiles; ++t) V::store(out + ((row + m) * 2 + t) * V::kWidth, acc[m][t]);
  }
}

template <class V, int Bits, bool Symmetric, int Tiles>
void linear_panels(const PackedView& w, const std::uint8_t* const* tiles, const QuantizedRows& x,
                   int rows, float* out, void* scratch) {
  auto& panel = *static_cast<Panel<V>*>(scratch);
  const int blocks = w.cols / kGroup;
  panel.offset = 1 << (Bits - 1);
  for (int begin = 0; begin < blocks; begin += kPanelBlocks) {
    const int count = blocks - begin < kPanelBlocks ? blocks - begin : kPanelBlocks;
    for (int t = 0; t < Tiles; ++t) {
      fill_panel<V, Bits, Symmetric>(w, tiles[t], begin, count, t, panel);
    }
    int row = 0;
    for (; row + V::kRowTile <= rows; row += V::kRowTile) {
      panel_rows<V, Symmetric, V::kRowTile, Tiles>(panel, begin, count, x, row, out);
    }
    if (row + 4 <= rows) {
      panel_rows<V, Symmetric, 4, Tiles>(panel, begin, count, x, row, out);
      row += 4;
    }
    if (row + 2 <= rows) {
      panel_rows<V, Symmetric, 2, Tiles>(panel, begin, count, x, row, out);
      row += 2;
    }
    if (row < rows) panel_rows<V, Symmetric, 1, Tiles>(panel, begin, count, x, row, out);
  }
}

template <class V, int Bits, bool Symmetric>
void linear_bits(const PackedView& w, int tile0, int tile1, const QuantizedRows& x, int rows,
                 float* out, void* scratch) {
  const std::uint8_t* tiles[2] = {
      w.data + static_cast<std::size_t>(tile0) * w.tile_bytes,
      w.data + static_cast<std::size_t>(tile1 < 0 ? tile0 : tile1) * w.tile_bytes};
  if (rows > V::kDirectRows) {
    if (tile1 < 0) return linear_panels<V, Bits, Symmetric, 1>(w, tiles, x, rows, out, scratch);
    return linear_panels<V, Bits, Symmetric, 2>(w, tiles, x, rows, out, scratch);
  }
  for (int t = 0; t < (tile1 < 0 ? 1 : 2); ++t) {
    float* to = out + t * V::kWidth;
    if (x.interleave == 1) linear_direct<V, Bits, Symmetric, 1>(w, tiles[t], x, rows, to);
    if (x.interleave == 2) linear_direct<V, Bits, Symmetric, 2>(w, tiles[t], x, rows, to);
    if (x.interleave == 4) linear_direct<V, Bits, Symmetric, 4>(w, tiles[t], x, rows, to);
    if constexpr (V::kDirectRows > 4) {
      if (x.interleave == kRowBlock) {
        linear_direct<V, Bits, Symmetric, kRowBlock>(w, tiles[t], x, rows, to);
      }
    }
  }
}

template <class V, int Bits>
void linear_symmetry(const PackedView& w, int tile0, int tile1, const QuantizedRows& x, int rows,
                     float* out, void* scratch) {
  if (w.symmetric) return linear_bits<V, Bits, true>(w, tile0, tile1, x, rows, out, scratch);
  linear_bits<V, Bits, false>(w, tile0, tile1, x, rows, out, scratch);
}

template <class V>
void linear(const PackedView& w, int tile0, int tile1, const QuantizedRows& x, int rows, float* out,
            void* scratch) {
  switch (w.bits) {
    case 1:
      return linear_symmetry<V, 1>(w, tile0, tile1, x, rows, out, scratch);
    case 2:
      return linear_symmetry<V, 2>(w, tile0, tile1, x, rows, out, scratch);
    case 3:
      return linear_symmetry<V, 3>(w, tile0, tile1, x, rows, out, scratch);
    case 4:
      return linear_symmetry<V, 4>(w, tile0, tile1, x, rows, out, scratch);
    case 5:
      return linear_symmetry<V, 5>(w, tile0, tile1, x, rows, out, scratch);
    case 6:
      return linear_symmetry<V, 6>(w, tile0, tile1, x, rows, out, scratch);
    default:
      return linear_symmetry<V, 8>(w, tile0, tile1, x, rows, out, scratch);
  }
}

// --- dense linear ----------------------------------------------------------------------------

template <class V, Storage S>
inline typename V::F load_weight(const std::uint8_t* p) {
  if constexpr (S == Storage::kF32) return V::load(reinterpret_cast<const float*>(p));
  if constexpr (S == Storage::kF16) return V::load_f16(reinterpret_cast<const std::uint16_t*>(p));
  return V::load_bf16(reinterpret_cast<const std::uint16_t*>(p));
}

template <class V, Storage S, int Rows>
void dense_rows(const PackedView& w, const std::uint8_t* tile, const float* x, float* out) {
  using F = typename V::F;
  constexpr int kBytes = V::kWidth * (S == Storage::kF32 ? 4 : 2);
  F even[Rows];
  F odd[Rows];
  for (int m = 0; m < Rows; ++m) even[m] = odd[m] = V::set1(0.0F);
  for (int k = 0; k < w.cols; k += 2, tile += 2 * kBytes) {
    const F w0 = load_weight<V, S>(tile);
    const F w1 = load_weight<V, S>(tile + kBytes);
    for (int m = 0; m < Rows; ++m) {
      const float* in = x + static_cast<std::ptrdiff_t>(m) * w.cols + k;
      even[m] = V::fma(w0, V::set1(in[0]), even[m]);
      odd[m] = V::fma(w1, V::set1(in[1]), odd[m]);
    }
  }
  for (int m = 0; m < Rows; ++m) V::store(out + m * 2 * V::kWidth, V::add(even[m], odd[m]));
}

template <class V, Storage S>
void dense_tile(const PackedView& w, const std::uint8_t* tile, const float* x, int rows,
                float* out) {
  int row = 0;
  for (; row + 4 <= rows; row += 4) {
    dense_rows<V, S, 4>(w, tile, x + static_cast<std::ptrdiff_t>(row) * w.cols,
                        out + row * 2 * V::kWidth);
  }
  for (; row < rows; ++row) {
    dense_rows<V, S, 1>(w, tile, x + static_cast<std::ptrdiff_t>(row) * w.cols,
                        out + row * 2 * V::kWidth);
  }
}

template <class V>
void dense(const PackedView& w, int tile0, int tile1, const float* x, int rows, float* out) {
  for (int t = 0; t < (tile1 < 0 ? 1 : 2); ++t) {
    const std::uint8_t* tile =
        w.data + static_cast<std::size_t>(t == 0 ? tile0 : tile1) * w.tile_bytes;
    float* to = out + t * V::kWidth;
    if (w.storage == Storage::kF32) dense_tile<V, Storage::kF32>(w, tile, x, rows, to);
    if (w.storage == Storage::kF16) dense_tile<V, Storage::kF16>(w, tile, x, rows, to);
    if (w.storage == Storage::kBF16) dense_tile<V, Storage::kBF16>(w, tile, x, rows, to);
  }
}

// --- small ones ------------------------------------------------------------------------------

template <class V>
void glu(Glu kind, const float* gate, const float* up, int count, float* out) {
  using F = typename V::F;
  const F one = V::set1(1.0F);
  for (int i = 0; i < count; i += V::kWidth) {
    const F g = V::load(gate + i);
    F act;
    if (kind == Glu::kSilu) {
      act = V::div(g, V::add(one, exp_vec<V>(V::sub(V::set1(0.0F), g))));
    } else {  // 0.5 g (1 + tanh(sqrt(2/pi) (g + 0.044715 g^3)))
      const F cube = V::mul(V::mul(g, g), g);
      const F inner = V::mul(V::set1(0.7978845608F), V::fma(V::set1(0.044715F), cube, g));
      act = V::mul(V::mul(V::set1(0.5F), g), V::add(one, tanh_vec<V>(inner)));
    }
    V::store(out + i, V::mul(act, V::load(up + i)));
  }
}

template <class V>
void rotate(float* x, const float* cos, const float* sin, int half, bool interleaved) {
  using F = typename V::F;
  float lo[kMaxHeadDim / 2 + V::kWidth] = {};
  float hi[kMaxHeadDim / 2 + V::kWidth] = {};
  float c[kMaxHeadDim / 2 + V::kWidth] = {};
  float s[kMaxHeadDim / 2 + V::kWidth] = {};
  std::memcpy(c, cos, sizeof(float) * half);
  std::memcpy(s, sin, sizeof(float) * half);
  for (int i = 0; i < half; ++i) {
    lo[i] = x[interleaved ? 2 * i : i];
    hi[i] = x[interleaved ? 2 * i + 1 : i + half];
  }
  for (int i = 0; i < half; i += V::kWidth) {
    const F a = V::load(lo + i);
    const F b = V::load(hi + i);
    const F co = V::load(c + i);
    const F si = V::load(s + i);
    V::store(lo + i, V::sub(V::mul(a, co), V::mul(b, si)));
    V::store(hi + i, V::add(V::mul(b, co), V::mul(a, si)));
  }
  for (int i = 0; i < half; ++i) {
    x[interleaved ? 2 * i : i] = lo[i];
    x[interleaved ? 2 * i + 1 : i + half] = hi[i];
  }
}

template <class V>
void to_half(const float* x, int count, std::uint16_t* out) {
  for (int i = 0; i < count; i += V::kWidth) V::store_f16(out + i, V::load(x + i));
}

template <class V>
int argmax(const float* x, int count) {
  using F = typename V::F;
  const int whole = count - count % V::kWidth;
  float best = x[0];
  if (whole > 0) {
    F top = V::load(x);
    for (int i = V::kWidth; i < whole; i += V::kWidth) top = V::max(top, V::load(x + i));
    best = V::max_lane(top);
  }
  for (int i = whole; i < count; ++i) best = x[i] > best ? x[i] : best;
  for (int i = 0; i < count; ++i) {
    if (x[i] == best) return i;
  }
  return 0;
}

template <class V>
void soft_cap(float* x, int count, float cap) {
  float padded[V::kWidth] = {};
  for (int i = 0; i < count; i += V::kWidth) {
    const int n = count - i < V::kWidth ? count - i : V::kWidth;
    std::memcpy(padded, x + i, sizeof(float) * n);
    const auto scaled = V::mul(V::load(padded), V::set1(1.0F / cap));
    V::store(padded, V::mul(tanh_vec<V>(scaled), V::set1(cap)));
    std::memcpy(x + i, padded, sizeof(float) * n);
  }
}

}  // namespace
}  // namespace bodega::ops::cpu
