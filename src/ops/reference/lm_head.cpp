#include "ops/reference/reference.h"

namespace bodega::ops::reference {

namespace mx = mlx::core;

void lm_head(const LmHead& record, const Context& c) {
  const int sampled = static_cast<int>(c.batch.sampled_rows.size());
  if (sampled == 0) {
    c.arrays.logits = mx::zeros({0, c.plan.vocab_size}, mx::float32);
    return;
  }
  const mx::array rows(c.batch.sampled_rows.data(), mx::Shape{sampled}, mx::int32);
  mx::array x = mx::take(*c.arrays.slots[record.in], rows, 0);
  if (record.norm) x = rms_norm(x, *record.norm, c);
  mx::array y = c.weights.multiply(x, record.weight);
  if (record.bias) y = mx::add(y, c.weights.vector(*record.bias));
  if (record.scale != 1.0F) y = mx::multiply(y, mx::array(record.scale));
  if (record.soft_cap > 0.0F) {
    const mx::array cap(record.soft_cap);
    y = mx::multiply(cap, mx::tanh(mx::divide(y, cap)));
  }
  c.arrays.logits = y;
}

}  // namespace bodega::ops::reference
