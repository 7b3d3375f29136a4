#include "sample/row_math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace bodega::sample {
namespace {

constexpr std::size_t kLanes = 16;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

}  // namespace

float max_of(std::span<const float> row) {
  std::array<float, kLanes> lanes;
  lanes.fill(kLowest);
  std::size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j)
      lanes[j] = row[i + j] > lanes[j] ? row[i + j] : lanes[j];
  }
  for (; i < row.size(); ++i) lanes[0] = row[i] > lanes[0] ? row[i] : lanes[0];
  return *std::max_element(lanes.begin(), lanes.end());
}

TokenId argmax(std::span<const float> row) {
  const float best = max_of(row);
  if (best == kLowest) return -1;
  std::size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    int hits = 0;
    for (std::size_t j = 0; j < kLanes; ++j) hits |= row[i + j] == best;
    if (hits != 0) break;
  }
  while (row[i] != best) ++i;
  return static_cast<TokenId>(i);
}

double sum_exp(std::span<const float> row, float best, float scale) {
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      lanes[j] += static_cast<double>(exp_negative((row[i + j] - best) * scale));
    }
  }
  for (std::size_t j = 0; i < row.size(); ++i, ++j) {
    lanes[j] += static_cast<double>(exp_negative((row[i] - best) * scale));
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

double log_sum_exp(std::span<const float> row, float best) {
  return static_cast<double>(best) + std::log(sum_exp(row, best, 1.0F));
}

}  // namespace bodega::sample
