#include "schedule/prefill_budget.h"

#include <algorithm>
#include <cmath>

namespace bodega::schedule {

PrefillBudget::PrefillBudget(const GapTarget& target, const cost::CostModel* prices,
                             cost::StepShape& step, const Bounds& bounds)
    : prices_(prices), step_(step), bounds_(bounds), least_rows_(target.least_rows) {
  if (prices == nullptr) return;
  if (bounds.decoding) {
    budget_s_ = target.seconds > 0 ? target.seconds : target.factor * prices->step_seconds(step);
  } else {
    budget_s_ = target.alone_s;
    // Fewer rows than the ridge leave arithmetic idle: short steps would only waste reads.
    const double rows = std::ceil(target.alone_ridges * prices->ridge_rows());
    least_rows_ = std::max(least_rows_, static_cast<int>(std::min(rows, 1e6)));
  }
}

int PrefillBudget::rows_at(int position) const {
  const int ceiling = bounds_.rows - rows_;
  if (prices_ == nullptr || ceiling <= 0) return ceiling;
  const int least = std::min(ceiling, least_rows_ - rows_);
  return std::max(least, prices_->longest_chunk(step_, position, budget_s_, ceiling));
}

void PrefillBudget::take(int position, int rows, bool another_prompt) {
  step_.add_rows(position, rows);
  rows_ += rows;
  prompts_ += another_prompt ? 1 : 0;
}

}  // namespace bodega::schedule
