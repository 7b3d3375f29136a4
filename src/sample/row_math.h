#pragma once

#include <span>

#include "core/request.h"

namespace bodega::sample {

using core::TokenId;

// The largest value; NaN is passed over, -infinity when nothing is left.
float max_of(std::span<const float> row);

// Lowest id among the largest values; -1 when no value is above -infinity.
TokenId argmax(std::span<const float> row);

// Sum of exp((row[i] - best) * scale) over the row, in an order fixed by the row's length alone.
double sum_exp(std::span<const float> row, float best, float scale);

// log(sum(exp(row))), finite for a row with a finite largest value `best`.
double log_sum_exp(std::span<const float> row, float best);

}  // namespace bodega::sample
