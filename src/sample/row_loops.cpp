#include "sample/row_loops.h"

namespace bodega::sample {

const RowLoops& row_loops() {
#ifdef BODEGA_SAMPLE_AVX2
  static const RowLoops& best =
      __builtin_cpu_supports("avx2") ? avx2_row_loops() : plain_row_loops();
  return best;
#else
  return plain_row_loops();
#endif
}

}  // namespace bodega::sample
