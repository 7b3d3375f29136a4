#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// 16-bit floating point as integers: IEEE half (fp16) and bfloat16.
namespace bodega {

// Exact, without branches so that loops of it vectorise. Subnormals come right because the product
// with 2^112 is exact.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7FFFU) << 13U;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112F;
  const std::uint32_t special = magnitude | 0x7F800000U;  // infinity and not-a-number
  const std::uint32_t bits =
      magnitude >= 0x0F800000U ? special : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(bits | (static_cast<std::uint32_t>(half & 0x8000U) << 16U));
}

// Round to nearest even; too large becomes infinity.
inline std::uint16_t float_to_half(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  bits &= 0x7FFFFFFFU;
  if (bits > 0x7F800000U) return sign | 0x7E00U;
  if (bits >= 0x477FF000U) return sign | 0x7C00U;
  if (bits < 0x38800000U) {
    return sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(std::fabs(value), 24)));
  }
  return sign |
         static_cast<std::uint16_t>((bits - 0x38000000U + 0xFFFU + ((bits >> 13U) & 1U)) >> 13U);
}

inline float bfloat_to_float(std::uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16U);
}

// Round to nearest even; for finite values.
inline std::uint16_t float_to_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace bodega
