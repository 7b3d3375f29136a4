#pragma once

#include <cstdint>

namespace bodega::sample {

// exp(x) for x in [-87, 0], relative error under 2e-7; 0 below and for NaN. Plain arithmetic
// without a branch or a call, so that a loop of it vectorises and gives the same bits in every
// build. Static, because files compiled for different instruction sets must not share one copy.
static inline float exp_negative(float x) {
  constexpr float kLog2e = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x >= -87.0F ? x : -87.0F;
  const float shifted = clamped * kLog2e + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  // Minimax polynomial of Cephes' expf on [-ln2/2, ln2/2].
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const std::int32_t exponent = __builtin_bit_cast(std::int32_t, shifted) << 23;
  const float scaled = __builtin_bit_cast(float, __builtin_bit_cast(std::int32_t, p) + exponent);
  return x >= -87.0F ? scaled : 0.0F;
}

}  // namespace bodega::sample
