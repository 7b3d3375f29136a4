#include "ops/reference/reference.h"

namespace bodega::ops::reference {

namespace mx = mlx::core;

mx::array rms_norm(const mx::array& x, const Norm& norm, const Context& c) {
  mx::array weight = c.weights.vector(norm.weight);
  if (norm.weight_offset != 0.0F) weight = mx::add(weight, mx::array(norm.weight_offset));
  return mx::fast::rms_norm(x, weight, norm.eps);
}

mx::array apply_glu(Epilogue epilogue, const mx::array& y) {
  const std::vector<mx::array> halves = mx::split(y, 2, -1);
  const mx::array& gate = halves[0];
  if (epilogue == Epilogue::kSwiGlu) {
    return mx::multiply(mx::multiply(gate, mx::sigmoid(gate)), halves[1]);
  }
  const mx::array cube = mx::multiply(mx::multiply(gate, gate), gate);
  const mx::array inner = mx::multiply(mx::array(0.7978845608F),
                                       mx::add(gate, mx::multiply(mx::array(0.044715F), cube)));
  const mx::array act =
      mx::multiply(mx::multiply(mx::array(0.5F), gate), mx::add(mx::array(1.0F), mx::tanh(inner)));
  return mx::multiply(act, halves[1]);
}

void quant_linear(const QuantLinear& record, const Context& c) {
  mx::array x = *c.arrays.slots[record.in];
  if (record.norm) x = rms_norm(x, *record.norm, c);
  mx::array y = c.weights.multiply(x, record.weight);
  if (record.bias) y = mx::add(y, c.weights.vector(*record.bias));
  if (record.epilogue == Epilogue::kSwiGlu || record.epilogue == Epilogue::kGeGlu) {
    y = apply_glu(record.epilogue, y);
  }
  auto& out = c.arrays.slots[record.out];
  const int cols = c.plan.slots[record.out].cols;
  if (record.out_column == 0 && y.shape(1) == cols) {
    out = record.epilogue == Epilogue::kResidual ? mx::add(*out, y) : y;
    return;
  }
  const mx::array base = out ? *out : mx::zeros({c.batch.rows(), cols}, mx::float32);
  const mx::Shape start{0, record.out_column};
  const mx::Shape stop{c.batch.rows(), record.out_column + y.shape(1)};
  if (record.epilogue == Epilogue::kResidual) y = mx::add(mx::slice(base, start, stop), y);
  out = mx::slice_update(base, y, start, stop);
}

}  // namespace bodega::ops::reference
