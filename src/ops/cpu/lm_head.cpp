#include <algorithm>

#include "ops/cpu/step.h"

namespace bodega::ops::cpu {
namespace {

void prepare(const void* context, int sample, int) {
  const auto& bound = *static_cast<const BoundRecord*>(context);
  const auto& r = std::get<LmHead>(*bound.record);
  StepState& s = *bound.state;
  const PackedView& w = s.matrix(r.weight).view();
  const int samples = static_cast<int>(s.batch->sampled_rows.size());
  const LinearInput input{&s, r.norm ? &*r.norm : nullptr, &w, samples};
  prepare_row(input, s.row(r.in, s.batch->sampled_rows[sample]), sample);
}

void multiply(const void* context, int chunk, int worker) {
  const auto& bound = *static_cast<const BoundRecord*>(context);
  const auto& r = std::get<LmHead>(*bound.record);
  StepState& s = *bound.state;
  const PackedMatrix& w = s.matrix(r.weight);
  const int lanes = s.kernels->lanes;
  const int vocab = s.plan->vocab_size;
  const int samples = static_cast<int>(s.batch->sampled_rows.size());
  const float* bias = r.bias ? s.vector(*r.bias) : nullptr;
  const int end = std::min(unit_count(w, false), (chunk + 1) * bound.chunk_units);
  for (int unit = chunk * bound.chunk_units; unit < end; ++unit) {
    const UnitTiles tiles = unit_tiles(w, false, unit);
    const float* y = multiply_unit(s, w, tiles, samples, worker);
    const int begin = unit * 2 * lanes;
    const int count = std::min(tiles.second < 0 ? lanes : 2 * lanes, vocab - begin);
    for (int sample = 0; sample < samples; ++sample) {
      const float* from = y + sample * 2 * lanes;
      float* to = s.logits + static_cast<std::size_t>(sample) * vocab + begin;
      for (int i = 0; i < count; ++i) {
        to[i] = (bias != nullptr ? from[i] + bias[begin + i] : from[i]) * r.scale;
      }
      if (r.soft_cap > 0.0F) s.kernels->soft_cap(to, count, r.soft_cap);
    }
  }
}

}  // namespace

void add_lm_head(BoundRecord& bound, PhaseList& phases) {
  const auto& r = std::get<LmHead>(*bound.record);
  StepState& s = *bound.state;
  const PackedMatrix& w = s.matrix(r.weight);
  const int samples = static_cast<int>(s.batch->sampled_rows.size());
  if (samples == 0) return;
  reserve_input(s, samples, w.cols());
  const int units = unit_count(w, false);
  bound.chunk_units = units_per_chunk(s, w, units, samples);
  phases.push_back({samples, prepare, &bound});
  phases.push_back({(units + bound.chunk_units - 1) / bound.chunk_units, multiply, &bound});
}

}  // namespace bodega::ops::cpu
