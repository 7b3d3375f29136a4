#pragma once

#include <cstdint>

namespace bodega::cost {

// What the model says of itself, for doctor, /metrics and /v1/admin/loaded-models.
struct CostReport {
  double bandwidth_gb_s = 0;  // weights of a one-row step over its seconds
  double gflops = 0;          // of rows beyond the ridge
  double ridge_rows = 0;      // rows whose arithmetic takes as long as reading the weights
  double decode_step_s = 0;   // one row, short context
  double row_s = 0;           // one more row of a long chunk
  double ssd_read_gb_s = 0;
  double ssd_write_gb_s = 0;
  double error = 0;         // median of |predicted - real| / real over the last steps
  std::uint64_t steps = 0;  // real steps that corrected it
};

}  // namespace bodega::cost
