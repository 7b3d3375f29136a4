#include "ops/cpu/vec_avx2.h"
// The vector type comes first: the bodies are templates over it.
#include "ops/cpu/attention_bodies.h"

namespace bodega::ops::cpu {

const Kernels& avx2_kernels() {
  static constexpr Kernels kTable = make_kernels<VecAvx2>("avx2");
  return kTable;
}

}  // namespace bodega::ops::cpu
