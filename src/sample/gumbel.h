#pragma once

#include <array>
#include <cstdint>

namespace bodega::sample {

// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011): a counter and a key to four words, without state.
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53U;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57U;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9U;
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85U;
inline constexpr int kPhiloxRounds = 10;
std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter,
                                    const std::array<std::uint32_t, 2>& key);

// Which noise a row draws: a pure function of these three, so a seed repeats in any batch, after
// preemption and under speculation.
struct NoiseKey {
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;
  std::uint32_t position = 0;  // absolute position of the token that is chosen
};

// The standard Gumbel value of (seed, choice, position, id), finite, in about (-3.7, 36.8):
//   u = the first 53 of the 64 bits (first word of id, second word of id), plus a half, over 2^53
//   Gumbel = -log(-log1p(-u))
// docs/sampling.md defines the words; row_loops.h draws first words in bulk.
double gumbel(const NoiseKey& key, std::uint32_t id);

}  // namespace bodega::sample
