#include <algorithm>

#include "ops/cpu/step.h"

namespace bodega::ops::cpu {
namespace {

constexpr int kMaxGroup = kAttentionRows;

KvView kv_view(const PagedAttention& r, const StepState& s, int sequence, int kv_head) {
  const KvLayout& layout = s.plan->kv_groups[r.kv.group];
  KvView kv;
  kv.slabs = s.slabs.data();
  kv.blocks = s.batch->blocks.data() + s.batch->sequences[sequence].block_begin;
  kv.block_elements = layout.block_elements();
  kv.k_offset = layout.head_offset(r.kv.layer, 0, kv_head);
  kv.v_offset = layout.head_offset(r.kv.layer, 1, kv_head);
  kv.head_dim = r.shape.head_dim;
  return kv;
}

AttentionRows item_rows(const PagedAttention& r, const StepState& s, const AttentionItem& item,
                        int kv_head) {
  AttentionRows rows;
  const int group = r.shape.heads / r.shape.kv_heads;
  const core::SequenceSlice& slice = s.batch->sequences[item.sequence];
  for (int i = 0; i < item.row_count; ++i) {
    for (int g = 0; g < group; ++g, ++rows.count) {
      rows.q[rows.count] = s.row(r.qkv, item.row + i) + (kv_head * group + g) * r.shape.head_dim;
      rows.position[rows.count] = slice.position + item.row + i - slice.row_begin;
    }
  }
  rows.scale = r.scale;
  rows.soft_cap = r.soft_cap;
  rows.window = r.window;
  return rows;
}

void finish_row(const PagedAttention& r, const StepState& s, AttentionState& state, int row,
                int head) {
  const float* sink = r.sinks ? s.vector(*r.sinks) + head : nullptr;
  s.kernels->finish(state, sink, r.shape.head_dim, s.row(r.out, row) + head * r.shape.head_dim);
}

// All splits of the item in order, folded as they come; or one split into its partial state.
void run_item(const PagedAttention& r, StepState& s, const AttentionItem& item, int kv_head,
              int worker) {
  const int group = r.shape.heads / r.shape.kv_heads;
  const int dim = r.shape.head_dim;
  const KvView kv = kv_view(r, s, item.sequence, kv_head);
  const AttentionRows rows = item_rows(r, s, item, kv_head);
  std::vector<float>& buffer = s.worker_rows[worker];
  const std::size_t needed = std::size_t{2} * kAttentionRows * kMaxHeadDim;
  if (buffer.size() < needed) buffer.resize(needed);
  AttentionState state[kMaxGroup];
  AttentionState piece[kMaxGroup];
  for (int i = 0; i < rows.count; ++i) {
    state[i].values = buffer.data() + static_cast<std::size_t>(i) * dim;
    piece[i].values = buffer.data() + static_cast<std::size_t>(kAttentionRows + i) * dim;
  }
  void* scratch = s.worker_scratch[worker].data();
  s.kernels->attend(kv, rows, item.split_begin, state, scratch);
  for (int split = item.split_begin + 1; split < item.split_end; ++split) {
    s.kernels->attend(kv, rows, split, piece, scratch);
    for (int i = 0; i < rows.count; ++i) s.kernels->fold(state[i], piece[i], dim);
  }
  for (int i = 0; i < rows.count; ++i) {
    const int head = kv_head * group + i % group;
    if (item.partial < 0) {
      finish_row(r, s, state[i], item.row + i / group, head);
      continue;
    }
    const std::size_t at =
        static_cast<std::size_t>(item.partial + i / group) * r.shape.heads + head;
    s.partial_max[at] = state[i].max;
    s.partial_sum[at] = state[i].sum;
    std::copy_n(state[i].values, dim, s.partial_values.data() + at * dim);
  }
}

void run(const void* context, int chunk, int worker) {
  const auto& bound = *static_cast<const BoundRecord*>(context);
  const auto& r = std::get<PagedAttention>(*bound.record);
  StepState& s = *bound.state;
  run_item(r, s, s.attention_items[chunk / r.shape.kv_heads], chunk % r.shape.kv_heads, worker);
}

void fold_row(const void* context, int chunk, int) {
  const auto& bound = *static_cast<const BoundRecord*>(context);
  const auto& r = std::get<PagedAttention>(*bound.record);
  StepState& s = *bound.state;
  const FoldItem& item = s.fold_items[chunk];
  const int dim = r.shape.head_dim;
  for (int head = 0; head < r.shape.heads; ++head) {
    auto partial = [&](int split) {
      const std::size_t at = static_cast<std::size_t>(item.partial + split) * r.shape.heads + head;
      return AttentionState{s.partial_max[at], s.partial_sum[at],
                            s.partial_values.data() + at * dim};
    };
    AttentionState state = partial(0);
    for (int split = 1; split < item.splits; ++split) {
      s.kernels->fold(state, partial(split), dim);
    }
    finish_row(r, s, state, item.row, head);
  }
}

// A single row over a long cache: one item a split, so that all threads help.
void add_split_row(StepState& s, int sequence, int row, int first, int splits, int& partials) {
  s.fold_items.push_back({row, partials, splits - first});
  for (int split = first; split < splits; ++split) {
    s.attention_items.push_back({sequence, row, 1, split, split + 1, partials++});
  }
}

}  // namespace

void build_attention_items(StepState& s, const AttentionShape& shape, int window) {
  s.attention_items.clear();
  s.fold_items.clear();
  const int rows_at_once = std::max(1, kAttentionRows / (shape.heads / shape.kv_heads));
  int partials = 0;
  for (std::size_t i = 0; i < s.batch->sequences.size(); ++i) {
    const core::SequenceSlice& slice = s.batch->sequences[i];
    // From the end: the rows with most keys first, so that the last chunks are short.
    for (int end = slice.row_count; end > 0;) {
      const int begin = std::max(0, end - rows_at_once);
      const int last = slice.position + end - 1;
      const int earliest = window > 0 ? std::max(0, slice.position + begin - window + 1) : 0;
      const int first = earliest / kAttentionSplit;
      const int splits = last / kAttentionSplit + 1;
      const int sequence = static_cast<int>(i);
      if (slice.row_count == 1 && splits - first > 1) {
        add_split_row(s, sequence, slice.row_begin, first, splits, partials);
      } else {
        s.attention_items.push_back(
            {sequence, slice.row_begin + begin, end - begin, first, splits, -1});
      }
      end = begin;
    }
  }
  const std::size_t states = static_cast<std::size_t>(partials) * shape.heads;
  if (s.partial_max.size() < states) {
    s.partial_max.resize(states);
    s.partial_sum.resize(states);
  }
  if (s.partial_values.size() < states * shape.head_dim) {
    s.partial_values.resize(states * shape.head_dim);
  }
}

void add_paged_attention(BoundRecord& bound, PhaseList& phases) {
  const auto& r = std::get<PagedAttention>(*bound.record);
  StepState& s = *bound.state;
  phases.push_back({static_cast<int>(s.attention_items.size()) * r.shape.kv_heads, run, &bound});
  if (!s.fold_items.empty()) {
    phases.push_back({static_cast<int>(s.fold_items.size()), fold_row, &bound});
  }
}

}  // namespace bodega::ops::cpu
