#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "ops/cpu/kernels.h"

// NEON of every 64-bit Arm processor (Armv8.0): eight lanes in two registers, so that tiles are
// those of AVX2. Dot-product and matrix extensions multiply bytes and do not help int16
// activations. Included only by kernels_neon.cpp.
namespace {

struct VecNeon {
  using Activations = bodega::ops::cpu::Activations;
  static constexpr int kWidth = 8;
  static constexpr int kDirectRows = 4;  // 4 rows x 2 registers of sums, and as many of totals
  static constexpr int kRowTile = 4;     // 4 rows x 2 tiles x 2 registers of sums
  static constexpr int kAttentionTogether = 6;  // rows by
  static constexpr int kAttentionVectors = 2;   // vectors of keys or values, two registers each
  static constexpr bool kQuads = false;
  // Products of unsigned by signed bytes came with Armv8.6: int8 gains nothing before.
  static constexpr Activations fast(int) { return Activations::kInt16; }
  struct F {
    float32x4_t lo, hi;
  };
  struct I {
    int32x4_t lo, hi;
  };

  static F set1(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static F load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  static void store(float* p, F a) {
    vst1q_f32(p, a.lo);
    vst1q_f32(p + 4, a.hi);
  }
  static F add(F a, F b) { return {vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)}; }
  static F sub(F a, F b) { return {vsubq_f32(a.lo, b.lo), vsubq_f32(a.hi, b.hi)}; }
  static F mul(F a, F b) { return {vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)}; }
  static F div(F a, F b) { return {vdivq_f32(a.lo, b.lo), vdivq_f32(a.hi, b.hi)}; }
  static F fma(F a, F b, F c) { return {vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)}; }
  // The second operand where one is not a number, as on x86.
  static F max(F a, F b) {
    return {vbslq_f32(vcgtq_f32(a.lo, b.lo), a.lo, b.lo),
            vbslq_f32(vcgtq_f32(a.hi, b.hi), a.hi, b.hi)};
  }
  static F min(F a, F b) {
    return {vbslq_f32(vcltq_f32(a.lo, b.lo), a.lo, b.lo),
            vbslq_f32(vcltq_f32(a.hi, b.hi), a.hi, b.hi)};
  }
  static F abs(F a) { return {vabsq_f32(a.lo), vabsq_f32(a.hi)}; }
  static F round(F a) { return {vrndnq_f32(a.lo), vrndnq_f32(a.hi)}; }
  static float sum(F a) { return vaddvq_f32(vaddq_f32(a.lo, a.hi)); }
  static float max_lane(F a) { return vmaxvq_f32(vmaxq_f32(a.lo, a.hi)); }
  // a * 2^n for whole n in [-126, 127]
  static F scale2(F a, F n) {
    return {vmulq_f32(a.lo, power2(n.lo)), vmulq_f32(a.hi, power2(n.hi))};
  }

  static F load_f16(const std::uint16_t* p) {
    const float16x8_t x = vreinterpretq_f16_u16(vld1q_u16(p));
    return {vcvt_f32_f16(vget_low_f16(x)), vcvt_high_f32_f16(x)};
  }
  static F load_bf16(const std::uint16_t* p) {
    const uint16x8_t x = vld1q_u16(p);
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(x), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(x, 16))};
  }
  static void store_f16(std::uint16_t* p, F a) {
    vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(a.lo), a.hi)));
  }

  static I zero() { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
  static I load_int(const void* p) {
    const auto* bytes = static_cast<const std::uint8_t*>(p);
    return {vreinterpretq_s32_u8(vld1q_u8(bytes)), vreinterpretq_s32_u8(vld1q_u8(bytes + 16))};
  }
  static void store_int(void* p, I a) {
    auto* bytes = static_cast<std::uint8_t*>(p);
    vst1q_u8(bytes, vreinterpretq_u8_s32(a.lo));
    vst1q_u8(bytes + 16, vreinterpretq_u8_s32(a.hi));
  }
  static I set1_int(std::int32_t x) { return {vdupq_n_s32(x), vdupq_n_s32(x)}; }
  static I add_int(I a, I b) { return {vaddq_s32(a.lo, b.lo), vaddq_s32(a.hi, b.hi)}; }
  static I sub_int(I a, I b) { return {vsubq_s32(a.lo, b.lo), vsubq_s32(a.hi, b.hi)}; }
  static I or_int(I a, I b) { return {vorrq_s32(a.lo, b.lo), vorrq_s32(a.hi, b.hi)}; }
  template <int N>
  static I shift_left32(I a) {
    return {vshlq_n_s32(a.lo, N), vshlq_n_s32(a.hi, N)};
  }
  template <int N>
  static I shift_left16(I a) {
    return {vreinterpretq_s32_u16(vshlq_n_u16(words(a.lo), N)),
            vreinterpretq_s32_u16(vshlq_n_u16(words(a.hi), N))};
  }
  template <int N>
  static I shift_right16(I a) {
    if constexpr (N == 0) {  // the instruction cannot shift by nothing
      return a;
    } else {
      return {vreinterpretq_s32_u16(vshrq_n_u16(words(a.lo), N)),
              vreinterpretq_s32_u16(vshrq_n_u16(words(a.hi), N))};
    }
  }
  template <int Mask>
  static I and16(I a) {
    const uint16x8_t mask = vdupq_n_u16(Mask);
    return {vreinterpretq_s32_u16(vandq_u16(words(a.lo), mask)),
            vreinterpretq_s32_u16(vandq_u16(words(a.hi), mask))};
  }
  // acc + a.lo16 * b.lo16 + a.hi16 * b.hi16, b the same pair in every lane. Low and high halves are
  // gathered first (once for all rows: the compiler shares them), so that each product is a
  // multiply-accumulate by one element and none is added up across lanes.
  static I dot_pair(I acc, I a, std::int32_t pair) {
    const int16x8_t lo = vuzp1q_s16(vreinterpretq_s16_s32(a.lo), vreinterpretq_s16_s32(a.hi));
    const int16x8_t hi = vuzp2q_s16(vreinterpretq_s16_s32(a.lo), vreinterpretq_s16_s32(a.hi));
    const int16x4_t x = vreinterpret_s16_s32(vdup_n_s32(pair));
    acc.lo = vmlal_lane_s16(acc.lo, vget_low_s16(lo), x, 0);
    acc.hi = vmlal_high_lane_s16(acc.hi, lo, x, 0);
    acc.lo = vmlal_lane_s16(acc.lo, vget_low_s16(hi), x, 1);
    acc.hi = vmlal_high_lane_s16(acc.hi, hi, x, 1);
    return acc;
  }
  // Keeps the compiler from regrouping integer sums into more live registers than there are.
  static void pin(I& a) { asm volatile("" : "+w"(a.lo), "+w"(a.hi)); }
  static F to_float(I a) { return {vcvtq_f32_s32(a.lo), vcvtq_f32_s32(a.hi)}; }
  static void store_int16(std::int16_t* p, F a) {
    vst1q_s16(p, vqmovn_high_s32(vqmovn_s32(vcvtnq_s32_f32(a.lo)), vcvtnq_s32_f32(a.hi)));
  }

 private:
  static uint16x8_t words(int32x4_t a) { return vreinterpretq_u16_s32(a); }
  static float32x4_t power2(float32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23));
  }
};

}  // namespace
