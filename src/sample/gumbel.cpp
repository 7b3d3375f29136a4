#include "sample/gumbel.h"

#include <cmath>

namespace bodega::sample {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53U;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57U;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
constexpr int kRounds = 10;

struct Words {
  std::uint32_t x, y, z, w;
};

inline void philox_rounds(Words& c, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t a = static_cast<std::uint64_t>(kMultiplier0) * c.x;
    const std::uint64_t b = static_cast<std::uint64_t>(kMultiplier1) * c.z;
    c = {static_cast<std::uint32_t>(b >> 32) ^ c.y ^ key0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c.w ^ key1, static_cast<std::uint32_t>(a)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
}

// `half` 0 gives the first words of four ids, 1 the second words.
Words words_of(const NoiseKey& key, std::uint32_t block, std::uint32_t half) {
  Words words{block, key.position, key.choice, half};
  philox_rounds(words, static_cast<std::uint32_t>(key.seed),
                static_cast<std::uint32_t>(key.seed >> 32));
  return words;
}

std::uint32_t pick(const Words& words, std::uint32_t id) {
  const std::array<std::uint32_t, 4> all = {words.x, words.y, words.z, words.w};
  return all[id % 4];
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  Words words{counter[0], counter[1], counter[2], counter[3]};
  philox_rounds(words, key[0], key[1]);
  return {words.x, words.y, words.z, words.w};
}

void noise_words(const NoiseKey& key, std::uint32_t block, int blocks, std::uint32_t* out) {
  for (int i = 0; i < blocks; ++i) {
    const Words words = words_of(key, block + static_cast<std::uint32_t>(i), 0);
    out[4 * i] = words.x;
    out[4 * i + 1] = words.y;
    out[4 * i + 2] = words.z;
    out[4 * i + 3] = words.w;
  }
}

double gumbel(const NoiseKey& key, std::uint32_t id) {
  const std::uint64_t high = pick(words_of(key, id / 4, 0), id);
  const std::uint64_t low = pick(words_of(key, id / 4, 1), id);
  const std::uint64_t bits = ((high << 32) | low) >> 11;
  const double u = (static_cast<double>(bits) + 0.5) * 0x1.0p-53;
  return -std::log(-std::log1p(-u));
}

}  // namespace bodega::sample
