#include "sample/row_math.h"

#include <cmath>
#include <limits>

#include "sample/row_loops.h"

namespace bodega::sample {

float max_of(std::span<const float> row) { return row_loops().max_of(row.data(), row.size()); }

TokenId argmax(std::span<const float> row) {
  const float best = max_of(row);
  if (best == -std::numeric_limits<float>::infinity()) return -1;
  const float below = std::nextafter(best, -std::numeric_limits<float>::infinity());
  std::size_t i = row_loops().block_above(row.data(), 0, row.size(), below);
  while (row[i] != best) ++i;
  return static_cast<TokenId>(i);
}

double sum_exp(std::span<const float> row, float best, float scale) {
  return row_loops().sum_exp(row.data(), row.size(), best, scale);
}

double log_sum_exp(std::span<const float> row, float best) {
  return static_cast<double>(best) + std::log(sum_exp(row, best, 1.0F));
}

}  // namespace bodega::sample
