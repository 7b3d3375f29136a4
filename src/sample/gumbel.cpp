#include "sample/gumbel.h"

#include <cmath>

namespace bodega::sample {

std::array<std::uint32_t, 4> philox(const std::array<std::uint32_t, 4>& counter,
                                    const std::array<std::uint32_t, 2>& key) {
  auto [x, y, z, w] = counter;
  auto [key0, key1] = key;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t a = std::uint64_t{kPhiloxMultiplier0} * x;
    const std::uint64_t b = std::uint64_t{kPhiloxMultiplier1} * z;
    x = static_cast<std::uint32_t>(b >> 32) ^ y ^ key0;
    y = static_cast<std::uint32_t>(b);
    z = static_cast<std::uint32_t>(a >> 32) ^ w ^ key1;
    w = static_cast<std::uint32_t>(a);
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return {x, y, z, w};
}

double gumbel(const NoiseKey& key, std::uint32_t id) {
  const std::array<std::uint32_t, 2> seed = {static_cast<std::uint32_t>(key.seed),
                                             static_cast<std::uint32_t>(key.seed >> 32)};
  const std::uint64_t high = philox({id / 4, key.position, key.choice, 0}, seed)[id % 4];
  const std::uint64_t low = philox({id / 4, key.position, key.choice, 1}, seed)[id % 4];
  const std::uint64_t bits = ((high << 32) | low) >> 11;
  const double u = (static_cast<double>(bits) + 0.5) * 0x1.0p-53;
  return -std::log(-std::log1p(-u));
}

}  // namespace bodega::sample
