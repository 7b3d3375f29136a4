#pragma once

#include "cost/cost_model.h"

namespace bodega::schedule {

// How long a step may be while others are running. Times are predictions of the cost model.
struct GapTarget {
  double factor = 2.2;      // times a step with the decode rows alone
  double seconds = 0;       // in place of the factor, when above 0
  double alone_s = 0.25;    // with nobody decoding: new arrivals are let in this often
  int least_rows = 8;       // prefill goes on by so many rows a step, whatever the target
  double alone_ridges = 4;  // and by so many times the ridge with nobody decoding
};

// The prefill rows of one step: a ceiling of rows, a bound of prompts, and the predicted time.
class PrefillBudget {
 public:
  struct Bounds {
    int rows = 0;
    int prompts = 0;
    bool decoding = false;  // the step already has decode rows
  };
  // `prices` may be null: only the bounds hold then. `step` grows by what is taken.
  PrefillBudget(const GapTarget& target, const cost::CostModel* prices, cost::StepShape& step,
                const Bounds& bounds);

  // Rows that a chunk from `position` on may still have.
  int rows_at(int position) const;
  void take(int position, int rows, bool another_prompt);
  bool takes_another() const { return prompts_ < bounds_.prompts; }
  bool spent() const { return rows_ >= bounds_.rows; }

 private:
  const cost::CostModel* prices_;
  cost::StepShape& step_;
  Bounds bounds_;
  double budget_s_ = 0;
  int least_rows_ = 0;
  int rows_ = 0;  // taken
  int prompts_ = 0;
};

}  // namespace bodega::schedule
