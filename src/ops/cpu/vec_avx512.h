#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/cpu/kernels.h"

// AVX-512 (F, BW, VL, DQ) with VNNI, sixteen lanes. Included only by kernels_avx512.cpp.
namespace {

struct VecAvx512 {
  using Activations = bodega::ops::cpu::Activations;
  static constexpr int kWidth = 16;
  static constexpr int kDirectRows = 8;  // as many as there are registers for
  static constexpr int kRowTile = 8;
  static constexpr int kAttentionTogether = 6;  // rows by
  static constexpr int kAttentionVectors = 4;   // vectors of keys or values in registers
  static constexpr bool kQuads = true;
  static constexpr Activations fast(int) { return Activations::kInt8; }
  using F = __m512;
  using I = __m512i;

  static F set1(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F a) { _mm512_storeu_ps(p, a); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F abs(F a) { return _mm512_abs_ps(a); }
  static F round(F a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static float sum(F a) { return sum256(_mm256_add_ps(low(a), high(a))); }
  static float max_lane(F a) {
    const __m256 y = _mm256_max_ps(low(a), high(a));
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
  static F scale2(F a, F n) { return _mm512_scalef_ps(a, n); }

  static F load_f16(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F load_bf16(const std::uint16_t* p) {
    const I wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
  static void store_f16(std::uint16_t* p, F a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  static I zero() { return _mm512_setzero_si512(); }
  static I load_int(const void* p) { return _mm512_loadu_si512(p); }
  static void store_int(void* p, I a) { _mm512_storeu_si512(p, a); }
  static I set1_int(std::int32_t x) { return _mm512_set1_epi32(x); }
  static I add_int(I a, I b) { return _mm512_add_epi32(a, b); }
  static I sub_int(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I or_int(I a, I b) { return _mm512_or_si512(a, b); }
  template <int N>
  static I shift_left16(I a) {
    return _mm512_slli_epi16(a, N);
  }
  template <int N>
  static I shift_right16(I a) {
    return _mm512_srli_epi16(a, N);
  }
  template <int Mask>
  static I and16(I a) {
    return _mm512_and_si512(a, _mm512_set1_epi16(Mask));
  }
  template <int N>
  static I shift_left32(I a) {
    return _mm512_slli_epi32(a, N);
  }
  static I dot_quad(I acc, I codes, std::int32_t quad) {
    return _mm512_dpbusd_epi32(acc, codes, _mm512_set1_epi32(quad));
  }
  // Keeps the compiler from regrouping integer sums into more live registers than there are.
  static void pin(I& a) { asm volatile("" : "+v"(a)); }
  static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
  static void store_int16(std::int16_t* p, F a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(a)));
  }

 private:
  static __m256 low(F a) { return _mm512_castps512_ps256(a); }
  static __m256 high(F a) { return _mm512_extractf32x8_ps(a, 1); }
  static float sum256(__m256 y) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
};

}  // namespace
