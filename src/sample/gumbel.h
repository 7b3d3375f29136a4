#pragma once

#include <array>
#include <cstdint>

namespace bodega::sample {

// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011): a counter and a key to four words, without state.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

// Which noise a row draws: a pure function of these three, so a seed repeats in any batch, after
// preemption and under speculation.
struct NoiseKey {
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;
  std::uint32_t position = 0;  // absolute position of the token that is chosen
};

// First words of the noise of ids [4 * block, 4 * block + 4 * blocks).
// out: [4 * blocks]
void noise_words(const NoiseKey& key, std::uint32_t block, int blocks, std::uint32_t* out);

// The standard Gumbel value of (seed, choice, position, id), finite, in about (-3.7, 36.8):
//   u = the first 53 of the 64 bits (first word of id, second word of id), plus a half, over 2^53
//   Gumbel = -log(-log1p(-u))
// docs/sampling.md defines the words.
double gumbel(const NoiseKey& key, std::uint32_t id);

}  // namespace bodega::sample
