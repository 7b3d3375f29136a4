#include "sample/logprobs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sample/row_math.h"
#include "sample/survivors.h"

namespace bodega::sample {

core::TokenLogprob token_logprob(std::span<const float> logits, core::TokenId id, int top) {
  const double total = log_sum_exp(logits, max_of(logits));
  auto logprob = [total](float logit) {
    const double value = static_cast<double>(logit) - total;
    return std::isfinite(value) ? std::max(static_cast<float>(value), kLowestLogprob)
                                : kLowestLogprob;
  };
  core::TokenLogprob result;
  result.id = id;
  result.logprob = logprob(logits[static_cast<std::size_t>(id)]);
  std::vector<Candidate> best;
  find_top(logits, top, best);
  for (const Candidate& c : best) result.top.emplace_back(c.id, logprob(c.logit));
  return result;
}

}  // namespace bodega::sample
