#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/weight_source.h"

namespace bodega::model {

// IEEE half to single, exactly, without branches so that loops of it vectorise. Subnormals come
// right because the product with 2^112 is exact.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7FFFU) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112F;
  const std::uint32_t special = magnitude | 0x7F800000U;  // infinity and not-a-number
  const std::uint32_t bits =
      magnitude >= 0x0F800000U ? special : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(bits | (static_cast<std::uint32_t>(half & 0x8000U) << 16));
}

inline float bfloat_to_float(std::uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16);
}

// Weight files promise no alignment.
inline std::uint16_t load_u16(const std::byte* bytes) {
  std::uint16_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

inline std::size_t float_size(ops::FloatType type) { return type == ops::FloatType::kF32 ? 4 : 2; }

// `count` values that lie one after the other, widened.
void widen(ops::FloatType type, const std::byte* in, std::size_t count, float* out);

}  // namespace bodega::model
