#include "ops/cpu/vec_avxvnni.h"
// The vector type comes first: the bodies are templates over it.
#include "ops/cpu/attention_bodies.h"

namespace bodega::ops::cpu {

const Kernels& avxvnni_kernels() {
  static constexpr Kernels kTable = make_kernels<VecAvxVnni>("avxvnni");
  return kTable;
}

}  // namespace bodega::ops::cpu
