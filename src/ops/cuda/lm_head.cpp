#include "ops/cuda/step.h"

namespace bodega::ops::cuda {

void run_lm_head(StepState& s, const LmHead& r) {
  const int count = static_cast<int>(s.batch->sampled_rows.size());
  if (count == 0) return;
  const PackedMatrix& w = s.matrix(r.weight);
  prepare_rows(s, r.in, r.norm, w, reinterpret_cast<const int*>(s.tables.at(s.sampled)), count);
  LinearArgs a{};
  a.bias = r.bias ? s.vector(*r.bias) : nullptr;
  a.out = reinterpret_cast<float*>(s.logits);
  a.out_stride = s.plan.vocab_size;
  a.tokens = count;
  a.epilogue = kLinearLogits;
  a.logit_scale = r.scale;
  a.soft_cap = r.soft_cap;
  multiply(s, w, a);
}

}  // namespace bodega::ops::cuda
