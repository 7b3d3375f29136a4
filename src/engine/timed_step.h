#pragma once

#include "core/batch.h"
#include "engine/runner.h"

// Steps made to be timed, for calibration and `doctor`.
namespace bodega::engine {

// One sequence whose `rows` rows begin at `position`; the last row is sampled.
core::Batch one_sequence(const Runner& runner, int position, int rows);

// Seconds, the median of `repeats` runs of the step.
double median_step(Runner& runner, const core::Batch& batch, int repeats);

}  // namespace bodega::engine
