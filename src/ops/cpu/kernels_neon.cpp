#include "ops/cpu/vec_neon.h"
// The vector type comes first: the bodies are templates over it.
#include "ops/cpu/attention_bodies.h"

namespace bodega::ops::cpu {

const Kernels& neon_kernels() {
  static constexpr Kernels kTable = make_kernels<VecNeon>("neon");
  return kTable;
}

}  // namespace bodega::ops::cpu
