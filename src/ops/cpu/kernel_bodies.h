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
