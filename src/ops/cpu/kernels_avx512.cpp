#include "ops/cpu/vec_avx512.h"
// The vector type comes first: the bodies are templates over it.
#include "ops/cpu/attention_bodies.h"

namespace bodega::ops::cpu {

const Kernels& avx512_kernels() {
  static constexpr Kernels kTable = make_kernels<VecAvx512>("avx512");
  return kTable;
}

}  // namespace bodega::ops::cpu
