// Included once by each row_loops_<set>.cpp. Everything is in an unnamed namespace and calls no
// template of the standard library: code compiled for one instruction set must not leak into
// another.
#pragma once

#include "sample/exp_negative.h"
#include "sample/gumbel.h"
#include "sample/row_loops.h"

// g++ unrolls a loop of known length before it thinks of vectors; clang does not.
#if defined(__GNUC__) && !defined(__clang__)
#define BODEGA_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define BODEGA_KEEP_LOOP
#endif

namespace bodega::sample {
namespace {

float max_of_body(const float* row, std::size_t size) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = -__builtin_inff();
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    BODEGA_KEEP_LOOP
    for (std::size_t j = 0; j < kLanes; ++j) {
      lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
    }
  }
  for (; i < size; ++i) lanes[0] = row[i] > lanes[0] ? row[i] : lanes[0];
  float best = lanes[0];
  for (const float lane : lanes) best = lane > best ? lane : best;
  return best;
}

std::size_t block_above_body(const float* row, std::size_t start, std::size_t size, float bound) {
  std::size_t i = start;
  for (; i + kLanes <= size; i += kLanes) {
    int hits = 0;
    BODEGA_KEEP_LOOP
    for (std::size_t j = 0; j < kLanes; ++j) hits |= row[i + j] > bound;
    if (hits != 0) return i;
  }
  for (std::size_t j = i; j < size; ++j) {
    if (row[j] > bound) return i;
  }
  return size;
}

double sum_exp_body(const float* row, std::size_t size, float best, float scale) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    BODEGA_KEEP_LOOP
    for (std::size_t j = 0; j < kLanes; ++j) {
      lanes[j] += static_cast<double>(exp_negative((row[i + j] - best) * scale));
    }
  }
  for (std::size_t j = 0; i < size; ++i, ++j) {
    lanes[j] += static_cast<double>(exp_negative((row[i] - best) * scale));
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Philox for kLanes blocks of four ids side by side, so that the multiplications vectorise.
void noise_lanes(const NoiseKey& key, std::uint32_t block, std::uint32_t* out) {
  std::uint32_t x[kLanes], y[kLanes], z[kLanes], w[kLanes];
  BODEGA_KEEP_LOOP
  for (std::size_t j = 0; j < kLanes; ++j) {
    x[j] = block + static_cast<std::uint32_t>(j);
    y[j] = key.position;
    z[j] = key.choice;
    w[j] = 0;
  }
  auto key0 = static_cast<std::uint32_t>(key.seed);
  auto key1 = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    BODEGA_KEEP_LOOP
    for (std::size_t j = 0; j < kLanes; ++j) {
      const std::uint64_t a = std::uint64_t{kPhiloxMultiplier0} * x[j];
      const std::uint64_t b = std::uint64_t{kPhiloxMultiplier1} * z[j];
      x[j] = static_cast<std::uint32_t>(b >> 32) ^ y[j] ^ key0;
      y[j] = static_cast<std::uint32_t>(b);
      z[j] = static_cast<std::uint32_t>(a >> 32) ^ w[j] ^ key1;
      w[j] = static_cast<std::uint32_t>(a);
    }
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  BODEGA_KEEP_LOOP
  for (std::size_t j = 0; j < kLanes; ++j) {
    out[4 * j] = x[j];
    out[4 * j + 1] = y[j];
    out[4 * j + 2] = z[j];
    out[4 * j + 3] = w[j];
  }
}

void noise_chunk_body(const NoiseKey& key, std::uint32_t first_id, std::uint32_t* out) {
  constexpr std::uint32_t kStride = 4 * kLanes;
  for (std::uint32_t i = 0; i < kNoiseChunk; i += kStride) {
    noise_lanes(key, (first_id + i) / 4, out + i);
  }
}

// An id wins only when -log1p(-u) <= exp(x - score), and -log1p(-u) >= u >= word / 2^32, so most
// are ruled out by their first word. The margin covers the rounding of this float estimate.
std::uint64_t possible_winners_body(const float* logits, const std::uint32_t* words, float best,
                                    float scale, float score) {
  constexpr float kMargin = 1.0001F * 4294967296.0F;
  std::uint64_t blocks = 0;
  for (std::size_t start = 0; start < kNoiseChunk; start += kLanes) {
    int hits = 0;
    BODEGA_KEEP_LOOP
    for (std::size_t i = start; i < start + kLanes; ++i) {
      const float x = (logits[i] - best) * scale - score;
      const float bound = exp_negative(x < 0.0F ? x : 0.0F) * kMargin;
      // Half of the word fits a signed conversion, which every instruction set has.
      hits |= 2.0F * static_cast<float>(static_cast<std::int32_t>(words[i] >> 1)) <= bound;
    }
    blocks |= static_cast<std::uint64_t>(hits) << (start / kLanes);
  }
  return blocks;
}

constexpr RowLoops kRowLoops = {max_of_body, block_above_body, sum_exp_body, noise_chunk_body,
                                possible_winners_body};

}  // namespace
}  // namespace bodega::sample
