#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/least_squares.h"
#include "cost/machine_profile.h"
#include "cost/report.h"
#include "cost/work.h"

namespace bodega::cost {

// Prices in seconds on one machine for one model:
//   step = overhead + max(weight bytes / bandwidth, flops / rate(rows)) + KV bytes / bandwidth.
// The first two terms are one curve over rows with knots at powers of two, so that any rate(rows)
// fits; each knot, the head and attention start from the machine's profile and are corrected from
// real steps. Pure: times come in as numbers.
class CostModel {
 public:
  CostModel(const MachineProfile& machine, const ModelWork& work);

  double step_seconds(const StepShape& shape) const;
  // Rows of a prefill chunk from `position` on that may be added to a step so that it stays within
  // `budget_s`; 0 to `ceiling`.
  int longest_chunk(const StepShape& step, int position, double budget_s, int ceiling) const;

  // To compute `tokens` positions again that follow `position`, in chunks.
  double recompute_seconds(int position, int tokens) const;
  double reload_seconds(std::int64_t bytes) const;
  double spill_seconds(std::int64_t bytes) const;
  double row_seconds() const;
  double ridge_rows() const;

  // A step of this shape took so long. Calls before the first request calibrate the model.
  void observe_step(const StepShape& shape, double seconds, bool calibration = false);
  void observe_read(std::int64_t bytes, double seconds);
  void observe_write(std::int64_t bytes, double seconds);
  void set_ssd(double read_bytes_s, double write_bytes_s, double latency_s);

  const MachineProfile& machine() const { return machine_; }
  const ModelWork& work() const { return work_; }
  CostReport report() const;

  // The corrections as text, kept per machine and model between runs; false: not such a text, or
  // one of another version, and nothing has changed.
  std::string to_text() const;
  bool restore(std::string_view text);

 private:
  static constexpr int kKnots = 14;  // 1, 2, 4 ... 8192 rows
  enum Feature { kHead = kKnots, kSampled, kKvTokens, kKvPairs, kFeatures };
  using Features = std::array<double, kFeatures>;

  Features features(const StepShape& shape) const;
  double factor(int feature) const { return squares_.factors()[static_cast<std::size_t>(feature)]; }
  void refresh_curve();
  double rows_seconds(int rows) const;

  MachineProfile machine_;
  ModelWork work_;
  Features prior_{};                    // seconds at each knot, of the head, and a unit of the rest
  std::array<double, kKnots> curve_{};  // corrected seconds at each knot, never falling
  LeastSquares squares_;
  std::vector<float> errors_;  // ring of the last absolute relative errors
  std::uint64_t steps_ = 0;
};

}  // namespace bodega::cost
