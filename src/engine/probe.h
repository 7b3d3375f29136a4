#pragma once

#include <string>
#include <vector>

#include "cost/report.h"
#include "ops/executor.h"
#include "ops/plan.h"

namespace bodega::engine {

// How fast and how right the kernels are on this machine with this model; for `doctor`.
struct Probe {
  std::string kernels;                   // "cpu avx2"
  bool exact = false;                    // every record runs a kernel of ours
  std::vector<ops::RecordCheck> checks;  // each kernel against its twin, in the plan's order
  ops::StepWork work;                    // bytes and flops of a step
  double one_row_s = 0;                  // a decode step of one sequence, median
  double many_rows_s = 0;                // a prefill step of `many_rows` rows, median
  int many_rows = 0;
  cost::CostReport prices;  // the calibrated cost model, and its error on mixed steps
};

// Loads the model and runs steps on the caller's thread; nothing is served meanwhile.
Probe probe_model(const std::string& path, int threads);

// Gigabytes a second that `threads` threads read from memory together (best of a few passes over a
// buffer far larger than any cache).
double measure_read_bandwidth(int threads);

}  // namespace bodega::engine
