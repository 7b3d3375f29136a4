#include <algorithm>
#include <cmath>

#include "ops/cpu/step.h"

namespace bodega::ops::cpu {
namespace {

constexpr int kRowElements = 4096;

struct Heads {
  float* first;
  int count;
  const std::optional<Norm>* norm;
};

void rotate_heads(const RopeAndCacheWrite& r, StepState& s, const Heads& heads, int table,
                  int row) {
  const int half = r.rotary_dim / 2;
  const std::optional<Norm>& norm = *heads.norm;
  for (int h = 0; h < heads.count; ++h) {
    float* x = heads.first + h * r.shape.head_dim;
    if (norm) {
      s.kernels->rms_norm(x, s.vector(norm->weight), norm->eps, norm->weight_offset,
                          r.shape.head_dim, x);
    }
    if (half == 0) continue;
    const std::size_t at = static_cast<std::size_t>(row) * half;
    s.kernels->rotate(x, s.rotary[table].cos.data() + at, s.rotary[table].sin.data() + at, half,
                      r.interleaved);
  }
}

void run_row(const RopeAndCacheWrite& r, StepState& s, int table, int row) {
  const AttentionShape& shape = r.shape;
  float* q = s.row(r.qkv, row);
  float* k = q + shape.heads * shape.head_dim;
  const float* v = k + shape.kv_heads * shape.head_dim;
  rotate_heads(r, s, {q, shape.heads, &r.q_norm}, table, row);
  rotate_heads(r, s, {k, shape.kv_heads, &r.k_norm}, table, row);
  const core::SequenceSlice& slice = s.batch->sequences[s.row_sequence[row]];
  const int position = slice.position + row - slice.row_begin;
  const core::BlockRef ref = s.batch->blocks[slice.block_begin + position / kBlockTokens];
  const KvLayout& layout = s.plan->kv_groups[r.kv.group];
  std::uint16_t* block = s.writable_slabs[ref.slab] + ref.offset * layout.block_elements();
  const int inside = position % kBlockTokens;
  for (int h = 0; h < shape.kv_heads; ++h) {
    std::uint16_t key[kMaxHeadDim];
    s.kernels->to_half(k + h * shape.head_dim, shape.head_dim, key);
    std::uint16_t* keys = block + layout.head_offset(r.kv.layer, 0, h) + inside;
    for (int d = 0; d < shape.head_dim; ++d) keys[d * kBlockTokens] = key[d];
    s.kernels->to_half(v + h * shape.head_dim, shape.head_dim,
                       block + layout.head_offset(r.kv.layer, 1, h) + inside * shape.head_dim);
  }
}

void run(const void* context, int chunk, int) {
  const auto& bound = *static_cast<const BoundRecord*>(context);
  const auto& r = std::get<RopeAndCacheWrite>(*bound.record);
  StepState& s = *bound.state;
  const int end = std::min(s.rows, (chunk + 1) * bound.chunk_rows);
  for (int row = chunk * bound.chunk_rows; row < end; ++row) run_row(r, s, bound.rotary, row);
}

void fill(RotaryTable& table, const StepState& s, int half) {
  const std::size_t size = static_cast<std::size_t>(s.rows) * half;
  if (table.cos.size() < size) table.cos.resize(size);
  if (table.sin.size() < size) table.sin.resize(size);
  const float* inv_freq = half > 0 ? s.vector(table.inv_freq) : nullptr;
  for (const core::SequenceSlice& slice : s.batch->sequences) {
    for (int i = 0; i < slice.row_count; ++i) {
      const std::size_t at = static_cast<std::size_t>(slice.row_begin + i) * half;
      for (int j = 0; j < half; ++j) {
        const float angle = static_cast<float>(slice.position + i) * inv_freq[j];
        table.cos[at + j] = std::cos(angle) * table.scale;
        table.sin[at + j] = std::sin(angle) * table.scale;
      }
    }
  }
  table.filled = true;
}

int table_of(const RopeAndCacheWrite& r, StepState& s) {
  for (std::size_t i = 0; i < s.rotary.size(); ++i) {
    const RotaryTable& t = s.rotary[i];
    if (t.inv_freq == r.inv_freq && t.scale == r.rotary_scale) return static_cast<int>(i);
  }
  s.rotary.push_back({r.inv_freq, r.rotary_scale, {}, {}, false});
  return static_cast<int>(s.rotary.size()) - 1;
}

}  // namespace

void add_rope_and_cache_write(BoundRecord& bound, PhaseList& phases) {
  const auto& r = std::get<RopeAndCacheWrite>(*bound.record);
  StepState& s = *bound.state;
  bound.rotary = table_of(r, s);
  if (!s.rotary[bound.rotary].filled) fill(s.rotary[bound.rotary], s, r.rotary_dim / 2);
  bound.chunk_rows = std::max(1, kRowElements / s.plan->slots[r.qkv].cols);
  phases.push_back({(s.rows + bound.chunk_rows - 1) / bound.chunk_rows, run, &bound});
}

}  // namespace bodega::ops::cpu
