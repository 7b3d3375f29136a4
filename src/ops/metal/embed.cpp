#include "ops/metal/step.h"

namespace bodega::ops::metal {

void run_embed(StepState& s, const Embed& r) {
  const LoadedMatrix& w = s.matrix(r.table);
  const Kernel kernel{"embed",
                      "embed",
                      {{"BODEGA_BITS", std::to_string(w.layout.bits)},
                       {"BODEGA_CODES", std::to_string(w.layout.codes)},
                       {"BODEGA_GROUP", std::to_string(w.layout.group_size)},
                       {"BODEGA_SCALE", std::to_string(w.layout.scale_kind)}}};
  const EmbedParams p{w.layout.cols, r.scale};
  s.gpu.dispatch(make_dispatch(
      kernel, p, {{w.memory.get()}, {s.tables.get(), s.tokens}, {s.slots[r.out], 0, true}},
      {s.rows, 1}, 256));
}

}  // namespace bodega::ops::metal
