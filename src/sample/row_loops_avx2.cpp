#include "sample/row_loops_body.h"

namespace bodega::sample {

const RowLoops& avx2_row_loops() { return kRowLoops; }

}  // namespace bodega::sample
