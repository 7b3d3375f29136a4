#include "ops/reference/reference.h"

namespace bodega::ops::reference {

namespace mx = mlx::core;

// Every expert sees every row and the unchosen ones weigh nothing: slow and plain.
void moe(const Moe& record, const Context& c) {
  mx::array x = *c.arrays.slots[record.in];
  if (record.norm) x = rms_norm(x, *record.norm, c);
  const mx::array logits = c.weights.multiply(x, record.router);
  const int experts = static_cast<int>(record.down.size());
  const mx::array threshold = mx::min(mx::topk(logits, record.top_k, -1), -1, true);
  const mx::array chosen = mx::greater_equal(logits, threshold);
  mx::array weights = mx::softmax(logits, -1, true);
  weights = mx::where(chosen, weights, mx::array(0.0F));
  if (record.normalize_top_k) weights = mx::divide(weights, mx::sum(weights, -1, true));
  if (record.routed_scale != 1.0F) weights = mx::multiply(weights, mx::array(record.routed_scale));
  mx::array sum = *c.arrays.slots[record.out];
  for (int e = 0; e < experts; ++e) {
    const mx::array act = apply_glu(Epilogue::kSwiGlu, c.weights.multiply(x, record.gate_up[e]));
    const mx::array y = c.weights.multiply(act, record.down[e]);
    const mx::array weight = mx::slice(weights, {0, e}, {c.batch.rows(), e + 1});
    sum = mx::add(sum, mx::multiply(weight, y));
  }
  c.arrays.slots[record.out] = sum;
}

}  // namespace bodega::ops::reference
