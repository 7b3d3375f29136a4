#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "ops/cpu/kernels.h"

// Eight lanes of plain C++: what every processor can run, and the yardstick of the others.
// Included only by kernels_scalar.cpp; everything has internal linkage, so that code compiled for
// one instruction set never replaces another's.
namespace {

struct VecScalar {
  using Activations = bodega::ops::cpu::Activations;
  static constexpr int kWidth = 8;
  static constexpr int kDirectRows = 4;  // as many as there are registers for
  static constexpr int kRowTile = 4;
  static constexpr int kAttentionTogether = 2;  // rows by
  static constexpr int kAttentionVectors = 2;   // vectors of keys or values in registers
  static constexpr bool kQuads = false;
  static constexpr Activations fast(int) { return Activations::kInt8; }
  struct F {
    float v[kWidth];
  };
  struct I {
    std::int32_t v[kWidth];
  };
  template <class Op>
  static F each(Op op) {
    F r;
    for (int i = 0; i < kWidth; ++i) r.v[i] = op(i);
    return r;
  }
  template <class Op>
  static I each_int(Op op) {
    I r;
    for (int i = 0; i < kWidth; ++i) r.v[i] = op(i);
    return r;
  }

  static F set1(float x) {
    return each([&](int) { return x; });
  }
  static F load(const float* p) {
    F r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  static void store(float* p, F a) { std::memcpy(p, a.v, sizeof a.v); }
  static F add(F a, F b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F sub(F a, F b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F mul(F a, F b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F div(F a, F b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  static F fma(F a, F b, F c) {  // two roundings: a software fma would cost a call a lane
    return each([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
  }
  static F max(F a, F b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F min(F a, F b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F abs(F a) {
    return each([&](int i) { return std::fabs(a.v[i]); });
  }
  static F round(F a) {
    return each([&](int i) { return std::nearbyint(a.v[i]); });
  }
  static float sum(F a) {
    return ((a.v[0] + a.v[4]) + (a.v[2] + a.v[6])) + ((a.v[1] + a.v[5]) + (a.v[3] + a.v[7]));
  }
  static float max_lane(F a) {
    float m = a.v[0];
    for (int i = 1; i < kWidth; ++i) m = m < a.v[i] ? a.v[i] : m;
    return m;
  }
  // a * 2^n for whole n in [-126, 127]
  static F scale2(F a, F n) {
    return each([&](int i) { return std::ldexp(a.v[i], static_cast<int>(n.v[i])); });
  }

  static float half_to_float(std::uint16_t h) {
    const std::uint32_t sign = (h & 0x8000U) << 16U;
    const std::uint32_t exponent = (h >> 10U) & 31U;
    const std::uint32_t mantissa = h & 1023U;
    std::uint32_t bits = sign | ((exponent + 112U) << 23U) | (mantissa << 13U);
    if (exponent == 31U) bits = sign | 0x7F800000U | (mantissa << 13U);
    float value;
    std::memcpy(&value, &bits, 4);
    if (exponent == 0) value = std::ldexp(static_cast<float>(mantissa), -24) * (sign != 0 ? -1 : 1);
    return value;
  }
  static F load_f16(const std::uint16_t* p) {
    return each([&](int i) { return half_to_float(p[i]); });
  }
  static F load_bf16(const std::uint16_t* p) {
    return each([&](int i) {
      const std::uint32_t bits = std::uint32_t{p[i]} << 16U;
      float value;
      std::memcpy(&value, &bits, 4);
      return value;
    });
  }
  static std::uint16_t float_to_half(float x) {  // round to nearest even, as the hardware does
    std::uint32_t bits;
    std::memcpy(&bits, &x, 4);
    const std::uint32_t sign = (bits >> 16U) & 0x8000U;
    bits &= 0x7FFFFFFFU;
    if (bits > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
    if (bits >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7C00U);
    if (bits < 0x38800000U) {  // subnormal half
      const float scaled = std::nearbyint(std::ldexp(std::fabs(x), 24));
      return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(scaled));
    }
    const std::uint32_t odd = (bits >> 13U) & 1U;
    return static_cast<std::uint16_t>(sign | ((bits - 0x38000000U + 0xFFFU + odd) >> 13U));
  }
  static void store_f16(std::uint16_t* p, F a) {
    for (int i = 0; i < kWidth; ++i) p[i] = float_to_half(a.v[i]);
  }

  static I zero() {
    return each_int([](int) { return 0; });
  }
  static I load_int(const void* p) {
    I r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  static void store_int(void* p, I a) { std::memcpy(p, a.v, sizeof a.v); }
  static I set1_int(std::int32_t x) {
    return each_int([&](int) { return x; });
  }
  static I add_int(I a, I b) {
    return each_int([&](int i) { return a.v[i] + b.v[i]; });
  }
  static I sub_int(I a, I b) {
    return each_int([&](int i) { return a.v[i] - b.v[i]; });
  }
  static I or_int(I a, I b) {
    return each_int([&](int i) { return a.v[i] | b.v[i]; });
  }
  template <int N>
  static I shift_left16(I a) {
    return each_int([&](int i) {
      const auto x = static_cast<std::uint32_t>(a.v[i]);
      const std::uint32_t low = (x << N) & 0xFFFFU;
      return static_cast<std::int32_t>((((x >> 16U) << N) & 0xFFFFU) << 16U | low);
    });
  }
  template <int N>
  static I shift_right16(I a) {
    return each_int([&](int i) {
      const auto x = static_cast<std::uint32_t>(a.v[i]);
      return static_cast<std::int32_t>(((x >> 16U) >> N) << 16U | ((x & 0xFFFFU) >> N));
    });
  }
  template <int Mask>
  static I and16(I a) {
    return each_int([&](int i) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) & (Mask * 0x10001U));
    });
  }
  template <int N>
  static I shift_left32(I a) {
    return each_int(
        [&](int i) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) << N); });
  }
  // acc + the sum of four unsigned bytes of codes times four signed bytes of `quad`
  static I dot_quad(I acc, I codes, std::int32_t quad) {
    std::int8_t x[4];
    std::memcpy(x, &quad, sizeof x);
    return each_int([&](int i) {
      std::uint8_t w[4];
      std::memcpy(w, &codes.v[i], sizeof w);
      return acc.v[i] + w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3];
    });
  }
  // acc + a.lo16 * b.lo16 + a.hi16 * b.hi16, b the same pair in every lane
  static I dot_pair(I acc, I a, std::int32_t pair) {
    const std::int32_t lo = static_cast<std::int16_t>(pair & 0xFFFF);
    const std::int32_t hi = static_cast<std::int16_t>(static_cast<std::uint32_t>(pair) >> 16U);
    return each_int([&](int i) {
      const std::int32_t a_lo = static_cast<std::int16_t>(a.v[i] & 0xFFFF);
      const std::int32_t a_hi =
          static_cast<std::int16_t>(static_cast<std::uint32_t>(a.v[i]) >> 16U);
      return acc.v[i] + a_lo * lo + a_hi * hi;
    });
  }
  static void pin(I&) {}
  static F to_float(I a) {
    return each([&](int i) { return static_cast<float>(a.v[i]); });
  }
  static void store_int16(std::int16_t* p, F a) {  // whole numbers within int16
    for (int i = 0; i < kWidth; ++i) p[i] = static_cast<std::int16_t>(a.v[i]);
  }
};

}  // namespace
