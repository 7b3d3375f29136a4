#include "ops/cuda/step.h"

namespace bodega::ops::cuda {

void run_embed(StepState& s, const Embed& r) {
  const PackedMatrix& table = s.matrix(r.table);
  EmbedArgs a{};
  a.w = table.view();
  a.tokens = reinterpret_cast<const int*>(s.tables.at(s.tokens));
  a.out = s.slots[r.out].as<float>();
  a.cols = table.cols();
  a.scale = r.scale;
  s.launch(s.kernels_of(table).embed, {static_cast<unsigned>(s.rows)}, 256, a);
}

}  // namespace bodega::ops::cuda
