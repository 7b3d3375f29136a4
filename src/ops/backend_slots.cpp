#include <algorithm>

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

Segment segment_of(const Plan& plan, std::size_t begin, std::size_t end) {
  Segment s{begin, end, {}, {}, false};
  std::vector<bool> written(plan.slots.size(), false);
  std::vector<bool> wanted(plan.slots.size(), false);
  for (std::size_t i = begin; i < end; ++i) {
    const SlotUse use = slots_of(plan.records[i], plan);
    for (SlotId slot : use.reads) {
      if (!written[slot] && std::count(s.inputs.begin(), s.inputs.end(), slot) == 0) {
        s.inputs.push_back(slot);
      }
    }
    for (SlotId slot : use.writes) written[slot] = true;
    s.logits = s.logits || std::holds_alternative<LmHead>(plan.records[i]);
  }
  for (std::size_t i = end; i < plan.records.size(); ++i) {
    for (SlotId slot : slots_of(plan.records[i], plan).reads) wanted[slot] = true;
  }
  const bool alone = end - begin == 1;  // a self-check looks at what a single record wrote
  for (std::size_t slot = 0; slot < written.size(); ++slot) {
    if (written[slot] && (wanted[slot] || alone)) s.outputs.push_back(static_cast<SlotId>(slot));
  }
  return s;
}

}  // namespace bodega::ops
