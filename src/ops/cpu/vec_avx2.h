#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/cpu/kernels.h"

// AVX2 with FMA and F16C, eight lanes. Included only by kernels_avx2.cpp (and by the AVX-VNNI file,
// which replaces the dot product).
namespace {

struct VecAvx2 {
  using Activations = bodega::ops::cpu::Activations;
  static constexpr int kWidth = 8;
  static constexpr int kDirectRows = 4;  // as many as there are registers for
  static constexpr int kRowTile = 4;
  static constexpr int kAttentionTogether = 6;  // rows by
  static constexpr int kAttentionVectors = 2;   // vectors of keys or values in registers
  static constexpr bool kQuads = false;
  static constexpr Activations fast(int bits) {
    return bits <= 6 ? Activations::kInt8 : Activations::kInt16;
  }
  using F = __m256;
  using I = __m256i;

  static F set1(float x) { return _mm256_set1_ps(x); }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F a) { _mm256_storeu_ps(p, a); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F abs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a); }
  static F round(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static float sum(F a) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
  static float max_lane(F a) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps(x, x, 1)));
  }
  static F scale2(F a, F n) {
    const I biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23)));
  }

  static F load_f16(const std::uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F load_bf16(const std::uint16_t* p) {
    const I wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  static void store_f16(std::uint16_t* p, F a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  static I zero() { return _mm256_setzero_si256(); }
  static I load_int(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static void store_int(void* p, I a) { _mm256_storeu_si256(static_cast<__m256i*>(p), a); }
  static I set1_int(std::int32_t x) { return _mm256_set1_epi32(x); }
  static I add_int(I a, I b) { return _mm256_add_epi32(a, b); }
  static I sub_int(I a, I b) { return _mm256_sub_epi32(a, b); }
  static I or_int(I a, I b) { return _mm256_or_si256(a, b); }
  template <int N>
  static I shift_left16(I a) {
    return _mm256_slli_epi16(a, N);
  }
  template <int N>
  static I shift_right16(I a) {
    return _mm256_srli_epi16(a, N);
  }
  template <int Mask>
  static I and16(I a) {
    return _mm256_and_si256(a, _mm256_set1_epi16(Mask));
  }
  template <int N>
  static I shift_left32(I a) {
    return _mm256_slli_epi32(a, N);
  }
  static I dot_pair(I acc, I a, std::int32_t pair) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, _mm256_set1_epi32(pair)));
  }
  // Codes below 64 times int8: two such products stay within int16.
  static I dot_quad(I acc, I codes, std::int32_t quad) {
    const I pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi32(quad));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  // Keeps the compiler from regrouping integer sums into more live registers than there are.
  static void pin(I& a) { asm volatile("" : "+x"(a)); }
  static F to_float(I a) { return _mm256_cvtepi32_ps(a); }
  static void store_int16(std::int16_t* p, F a) {
    const I wide = _mm256_cvtps_epi32(a);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
  }
};

}  // namespace
