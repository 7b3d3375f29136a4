#include "sample/gumbel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace bodega::sample {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that the authors of Philox publish with their library.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Gumbel, IsTheDocumentedFunction) {
  const NoiseKey key{0x1122334455667788ULL, 3, 41};
  for (std::uint32_t id = 0; id < 64; ++id) {
    const Words first = philox({id / 4, 41, 3, 0}, {0x55667788, 0x11223344});
    const Words second = philox({id / 4, 41, 3, 1}, {0x55667788, 0x11223344});
    const std::uint64_t bits = std::uint64_t{first[id % 4]} << 32 | second[id % 4];
    const double u = (static_cast<double>(bits >> 11) + 0.5) / 9007199254740992.0;
    EXPECT_EQ(gumbel(key, id), -std::log(-std::log1p(-u)));
  }
}

TEST(Gumbel, HasTheRightDistribution) {
  constexpr int kDraws = 200'000;
  std::vector<double> draws;
  for (std::uint32_t i = 0; i < kDraws; ++i) draws.push_back(gumbel({5, i % 3, i / 3}, i % 50'000));
  std::sort(draws.begin(), draws.end());
  double distance = 0;  // Kolmogorov-Smirnov
  for (int i = 0; i < kDraws; ++i) {
    const double cdf = std::exp(-std::exp(-draws[static_cast<std::size_t>(i)]));
    distance = std::max(distance, std::abs(cdf - (i + 0.5) / kDraws));
  }
  EXPECT_LT(distance, 1.95 / std::sqrt(kDraws));  // exceeded once in a thousand
}

TEST(Gumbel, DiffersWithEveryPartOfItsKey) {
  std::set<double> values;
  for (std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32, ~0ULL}) {
    for (std::uint32_t choice : {0U, 1U}) {
      for (std::uint32_t position : {0U, 1U, 4096U}) {
        for (std::uint32_t id : {0U, 1U, 4U, 150'000U}) {
          values.insert(gumbel({seed, choice, position}, id));
        }
      }
    }
  }
  EXPECT_EQ(values.size(), 4U * 2 * 3 * 4);
}

}  // namespace
}  // namespace bodega::sample
