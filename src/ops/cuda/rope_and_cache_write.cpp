#include <algorithm>

#include "ops/cuda/step.h"

namespace bodega::ops::cuda {
namespace {

constexpr unsigned kHeadsABlock = 8;

// The step's table of angles, filled by the first layer that needs it.
const float* rotary(StepState& s, const RopeAndCacheWrite& r) {
  if (r.rotary_dim == 0) return nullptr;
  const std::pair<VectorId, float> key{r.inv_freq, r.rotary_scale};
  DeviceMemory& table = s.rotary[key];
  if (std::find(s.rotary_filled.begin(), s.rotary_filled.end(), key) == s.rotary_filled.end()) {
    s.reserve(table, static_cast<std::size_t>(s.rows) * r.rotary_dim * sizeof(float));
    RotaryArgs a{};
    a.positions = reinterpret_cast<const int*>(s.tables.at(s.positions));
    a.inv_freq = s.vector(r.inv_freq);
    a.scale = r.rotary_scale;
    a.half = r.rotary_dim / 2;
    a.table = table.as<float>();
    s.launch(s.rotary_table, {static_cast<unsigned>(s.rows)}, 64, a);
    s.rotary_filled.push_back(key);
  }
  return table.as<float>();
}

}  // namespace

void run_rope_and_cache_write(StepState& s, const RopeAndCacheWrite& r) {
  const KvLayout& kv = s.plan.kv_groups[r.kv.group];
  RopeArgs a{};
  a.table = rotary(s, r);
  a.qkv = s.slots[r.qkv].as<float>();
  a.positions = reinterpret_cast<const int*>(s.tables.at(s.positions));
  a.row_blocks = reinterpret_cast<const DeviceAddress*>(s.tables.at(s.row_blocks));
  if (r.q_norm) {
    a.q_norm = s.vector(r.q_norm->weight);
    a.q_eps = r.q_norm->eps;
    a.q_offset = r.q_norm->weight_offset;
  }
  if (r.k_norm) {
    a.k_norm = s.vector(r.k_norm->weight);
    a.k_eps = r.k_norm->eps;
    a.k_offset = r.k_norm->weight_offset;
  }
  a.heads = r.shape.heads;
  a.kv_heads = r.shape.kv_heads;
  a.head_dim = r.shape.head_dim;
  a.rotary_half = r.rotary_dim / 2;
  a.interleaved = r.interleaved ? 1 : 0;
  a.k_offset_in_block = kv.head_offset(r.kv.layer, 0, 0);
  a.v_offset_in_block = kv.head_offset(r.kv.layer, 1, 0);
  const auto heads = static_cast<unsigned>(r.shape.heads + 2 * r.shape.kv_heads);
  s.launch(s.rope, {static_cast<unsigned>(s.rows), (heads + kHeadsABlock - 1) / kHeadsABlock},
           32 * kHeadsABlock, a);
}

}  // namespace bodega::ops::cuda
