#include "ops/cpu/vec_scalar.h"
// The vector type comes first: the bodies are templates over it.
#include "ops/cpu/attention_bodies.h"

namespace bodega::ops::cpu {

const Kernels& scalar_kernels() {
  static constexpr Kernels kTable = make_kernels<VecScalar>("scalar");
  return kTable;
}

}  // namespace bodega::ops::cpu
