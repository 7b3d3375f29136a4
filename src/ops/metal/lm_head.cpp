#include "ops/metal/step.h"

namespace bodega::ops::metal {

void run_lm_head(StepState& s, const LmHead& r) {
  if (s.sampled == 0) return;
  const LoadedMatrix& w = s.matrix(r.weight);
  prepare_rows(s, {s.slots[r.in], r.norm, static_cast<std::ptrdiff_t>(s.sampled_rows), s.sampled},
               w);
  multiply(s, w, s.sampled,
           {LinearEpilogue::kLogits, r.bias, s.logits, s.plan.vocab_size, 0, r.scale, r.soft_cap});
}

}  // namespace bodega::ops::metal
