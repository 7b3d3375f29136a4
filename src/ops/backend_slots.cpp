#include "ops/backend.h"

namespace bodega::ops {

SlotUse slots_of(const Record& record, const Plan& plan) {
  if (const auto* r = std::get_if<Embed>(&record)) return {{}, {r->out}};
  if (const auto* r = std::get_if<QuantLinear>(&record)) {
    const Matrix& w = plan.matrices[r->weight];
    const bool glu = r->epilogue == Epilogue::kSwiGlu || r->epilogue == Epilogue::kGeGlu;
    const bool whole = (glu ? w.rows / 2 : w.rows) == plan.slots[r->out].cols;
    if (r->epilogue == Epilogue::kResidual || !whole) return {{r->in, r->out}, {r->out}};
    return {{r->in}, {r->out}};
  }
  if (const auto* r = std::get_if<RopeAndCacheWrite>(&record)) return {{r->qkv}, {r->qkv}};
  if (const auto* r = std::get_if<PagedAttention>(&record)) return {{r->qkv}, {r->out}};
  if (const auto* r = std::get_if<Moe>(&record)) return {{r->in, r->out}, {r->out}};
  return {{std::get<LmHead>(record).in}, {}};
}

}  // namespace bodega::ops
