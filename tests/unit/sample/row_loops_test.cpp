#include "sample/row_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>
#include <vector>

#include "sample/gumbel.h"

namespace bodega::sample {
namespace {

TEST(RowLoops, NoiseInBulkIsTheNoiseOfEachId) {
  const NoiseKey key{0x1122334455667788ULL, 1, 7};
  std::vector<std::uint32_t> words(kNoiseChunk);
  row_loops().noise_chunk(key, 3 * kNoiseChunk, words.data());
  for (std::uint32_t i = 0; i < kNoiseChunk; ++i) {
    const std::uint32_t id = 3 * kNoiseChunk + i;
    ASSERT_EQ(words[i], philox({id / 4, 7, 1, 0}, {0x55667788, 0x11223344})[id % 4]);
  }
}

#ifdef BODEGA_SAMPLE_AVX2
std::vector<float> random_row(std::mt19937& random, std::size_t size) {
  std::normal_distribution<float> normal(0, 5);
  std::vector<float> row(size);
  for (float& x : row) {
    x = normal(random);
    if (random() % 50 == 0) x = -std::numeric_limits<float>::infinity();
    if (random() % 70 == 0) x = std::numeric_limits<float>::quiet_NaN();
  }
  return row;
}

TEST(RowLoops, EveryInstructionSetGivesTheSameBits) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this machine has no AVX2";
  const RowLoops& plain = plain_row_loops();
  const RowLoops& avx2 = avx2_row_loops();
  std::mt19937 random(12);
  for (const std::size_t size : {1U, 15U, 16U, 33U, 1024U, 4099U}) {
    const std::vector<float> row = random_row(random, size);
    const float best = plain.max_of(row.data(), size);
    EXPECT_EQ(avx2.max_of(row.data(), size), best);
    for (const float scale : {0.5F, 1.0F, 7.3F}) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(plain.sum_exp(row.data(), size, best, scale)),
                std::bit_cast<std::uint64_t>(avx2.sum_exp(row.data(), size, best, scale)));
    }
    for (float bound = best; bound > best - 30; bound -= 3) {
      EXPECT_EQ(plain.block_above(row.data(), 0, size, bound),
                avx2.block_above(row.data(), 0, size, bound));
    }
  }
  std::vector<std::uint32_t> a(kNoiseChunk);
  std::vector<std::uint32_t> b(kNoiseChunk);
  for (std::uint32_t position = 0; position < 50; ++position) {
    const std::vector<float> row = random_row(random, kNoiseChunk);
    const float best = plain.max_of(row.data(), kNoiseChunk);
    plain.noise_chunk({9, 0, position}, 0, a.data());
    avx2.noise_chunk({9, 0, position}, 0, b.data());
    ASSERT_EQ(a, b);
    for (const float score : {-3.0F, 0.0F, 2.0F, 9.0F}) {
      ASSERT_EQ(plain.possible_winners(row.data(), a.data(), best, 1.0F, score),
                avx2.possible_winners(row.data(), a.data(), best, 1.0F, score));
    }
  }
}
#endif

}  // namespace
}  // namespace bodega::sample
