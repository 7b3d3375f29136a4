#include "ops/cpu/step.h"

namespace bodega::ops::cpu {
namespace {

void run(const void* context, int row, int) {
  const auto& bound = *static_cast<const BoundRecord*>(context);
  const auto& r = std::get<Embed>(*bound.record);
  StepState& s = *bound.state;
  float* out = s.row(r.out, row);
  s.matrix(r.table).read_row(s.batch->tokens[row], out);
  if (r.scale == 1.0F) return;
  for (int i = 0; i < s.plan->slots[r.out].cols; ++i) out[i] *= r.scale;
}

}  // namespace

void add_embed(BoundRecord& bound, PhaseList& phases) {
  phases.push_back({bound.state->rows, run, &bound});
}

}  // namespace bodega::ops::cpu
