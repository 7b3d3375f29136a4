#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "ops/weight_source.h"

namespace bodega::model {

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
