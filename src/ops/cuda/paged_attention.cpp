#include <algorithm>

#include "ops/cuda/step.h"

namespace bodega::ops::cuda {
namespace {

constexpr int kPairs = 16;     // of a warp's tile
constexpr int kManyWarps = 4;  // tiles that share the keys they load
constexpr int kLongSplits = 16;

// Blocks of work before any split runs apart.
int base_tiles(const core::Batch& batch, int group) {
  int tiles = 0;
  for (const core::SequenceSlice& slice : batch.sequences) {
    const int pairs = slice.row_count * group;
    tiles += pairs <= kPairs ? 1 : (pairs + kManyWarps * kPairs - 1) / (kManyWarps * kPairs);
  }
  return tiles;
}

void add_tile(AttentionTable& table, const core::SequenceSlice& slice, int group, int window,
              int first, int width, int blocks, int multiprocessors) {
  const int pairs = slice.row_count * group;
  const int last = slice.position + (std::min(first + width, pairs) - 1) / group;
  const int lowest = window > 0 ? slice.position + first / group - window + 1 : 0;
  AttentionItem item{slice.block_begin,
                     slice.position,
                     slice.row_begin,
                     slice.row_count,
                     first,
                     std::max(0, lowest) / kSplit,
                     last / kSplit + 1,
                     -1};
  const int splits = item.split_end - item.split_begin;
  const int enough = splits > kLongSplits ? 8 * multiprocessors : 2 * multiprocessors;
  auto& items = table.items[width > kPairs ? 1 : 0];
  // States of four tiles would need four times the room: only single tiles split.
  if (splits == 1 || width > kPairs || blocks >= enough) {
    items.push_back(item);
    return;
  }
  const auto partial = static_cast<int>(table.states);
  table.folds.push_back({slice.row_begin, slice.row_count, first, partial, splits});
  table.states += splits;
  for (int split = 0; split < splits; ++split) {
    AttentionItem part = item;
    part.split_begin = item.split_begin + split;
    part.split_end = part.split_begin + 1;
    part.partial = partial + split;
    items.push_back(part);
  }
}

}  // namespace

AttentionTable attention_table(const core::Batch& batch, const AttentionShape& shape, int window,
                               int multiprocessors) {
  AttentionTable table;
  const int group = shape.heads / shape.kv_heads;
  const int blocks = base_tiles(batch, group) * shape.kv_heads;
  for (const core::SequenceSlice& slice : batch.sequences) {
    const int pairs = slice.row_count * group;
    const int width = pairs <= kPairs ? kPairs : kManyWarps * kPairs;
    for (int first = 0; first < pairs; first += width) {
      add_tile(table, slice, group, window, first, width, blocks, multiprocessors);
    }
  }
  return table;
}

void run_paged_attention(StepState& s, const PagedAttention& r) {
  const KvLayout& kv = s.plan.kv_groups[r.kv.group];
  const AttentionTable& table = s.attention.at({r.shape.heads, r.shape.kv_heads, r.window});
  const AttentionKernels& kernels = s.attention_of(r.shape.head_dim);
  const std::size_t states = table.states * r.shape.kv_heads * kPairs;
  s.reserve(s.state_out, states * r.shape.head_dim * sizeof(float));
  s.reserve(s.state_max, states * sizeof(float));
  s.reserve(s.state_sum, states * sizeof(float));
  AttentionArgs a{};
  a.qkv = s.slots[r.qkv].as<float>();
  a.out = s.slots[r.out].as<float>();
  a.blocks = reinterpret_cast<const DeviceAddress*>(s.tables.at(s.blocks));
  a.sinks = r.sinks ? s.vector(*r.sinks) : nullptr;
  a.partial_out = s.state_out.as<float>();
  a.partial_max = s.state_max.as<float>();
  a.partial_sum = s.state_sum.as<float>();
  a.qkv_stride = s.plan.slots[r.qkv].cols;
  a.out_stride = s.plan.slots[r.out].cols;
  a.heads = r.shape.heads;
  a.kv_heads = r.shape.kv_heads;
  a.group = r.shape.heads / r.shape.kv_heads;
  a.scale = r.scale;
  a.soft_cap = r.soft_cap;
  a.window = r.window;
  a.k_offset_in_block = kv.head_offset(r.kv.layer, 0, 0);
  a.v_offset_in_block = kv.head_offset(r.kv.layer, 1, 0);
  const auto kv_heads = static_cast<unsigned>(r.shape.kv_heads);
  for (int w = 0; w < 2; ++w) {
    if (table.items[w].empty()) continue;
    a.items = reinterpret_cast<const AttentionItem*>(s.tables.at(table.item_offset[w]));
    s.launch(kernels.attend[w], {static_cast<unsigned>(table.items[w].size()), kv_heads},
             w == 0 ? 32 : 32 * kManyWarps, a);
  }
  if (table.folds.empty()) return;
  const FoldArgs fold{a, reinterpret_cast<const FoldItem*>(s.tables.at(table.fold_offset))};
  s.launch(kernels.fold, {static_cast<unsigned>(table.folds.size()), kv_heads, kPairs},
           static_cast<unsigned>(r.shape.head_dim), fold);
}

}  // namespace bodega::ops::cuda
