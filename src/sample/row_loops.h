#pragma once

#include <cstddef>
#include <cstdint>

namespace bodega::sample {

// Passes over a whole row of logits, compiled once for every machine and once for AVX2: the same
// source, the same bits. Rows are cut into blocks of kLanes.
inline constexpr std::size_t kLanes = 16;
inline constexpr std::size_t kNoiseChunk = 1024;  // ids whose noise is drawn at once

struct NoiseKey;

struct RowLoops {
  // The largest value; NaN is passed over, -infinity when nothing is left.
  float (*max_of)(const float* row, std::size_t size);
  // Start of the first block from `start` (a multiple of kLanes) on with a value above `bound`;
  // `size` when there is none. The last block may be short.
  std::size_t (*block_above)(const float* row, std::size_t start, std::size_t size, float bound);
  // Sum of exp((row[i] - best) * scale), in an order fixed by `size` alone.
  double (*sum_exp)(const float* row, std::size_t size, float best, float scale);
  // First words of the noise of kNoiseChunk ids from `first_id`, a multiple of four.
  // out: [kNoiseChunk]
  void (*noise_chunk)(const NoiseKey& key, std::uint32_t first_id, std::uint32_t* out);
  // Bit i: block i of kNoiseChunk ids may hold one whose (logit - best) * scale + Gumbel exceeds
  // `score`. Never misses one; words: their first words.
  std::uint64_t (*possible_winners)(const float* logits, const std::uint32_t* words, float best,
                                    float scale, float score);
};

const RowLoops& row_loops();  // the fastest that this machine runs

const RowLoops& plain_row_loops();
const RowLoops& avx2_row_loops();  // only where CMake builds it

}  // namespace bodega::sample
