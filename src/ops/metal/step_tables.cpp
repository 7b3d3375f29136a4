#include "ops/metal/step_tables.h"

#include <algorithm>

namespace bodega::ops::metal {
namespace {

struct SplitRange {
  int begin;
  int end;
};

// Splits that the rows at positions [first, last] look at.
SplitRange splits_of(int first, int last, int window) {
  const int earliest = window > 0 ? std::max(0, first - window + 1) : 0;
  return {earliest / kAttentionSplit, last / kAttentionSplit + 1};
}

void add_slice(const core::SequenceSlice& slice, int group, int window, AttentionWork& work) {
  const int pairs = slice.row_count * group;
  const SplitRange all = splits_of(slice.position, slice.position, window);
  // A single row over a long cache: an item a split, so that the whole GPU helps.
  const bool apart = slice.row_count == 1 && all.end - all.begin > 1;
  for (int first = 0; first < pairs; first += kAttentionPairs) {
    const int count = std::min(kAttentionPairs, pairs - first);
    const int last_row = (first + count - 1) / group;
    const SplitRange range =
        splits_of(slice.position + first / group, slice.position + last_row, window);
    AttentionItem item{slice.row_begin, slice.position, slice.block_begin, first,
                       count,           range.begin,    range.end,         -1};
    if (!apart) {
      work.items.push_back(item);
      continue;
    }
    for (int split = range.begin; split < range.end; ++split) {
      item.split_begin = split;
      item.split_end = split + 1;
      item.partial = work.partials + split - range.begin;
      work.items.push_back(item);
    }
  }
  if (!apart) return;
  work.folds.push_back({slice.row_begin, work.partials, all.end - all.begin});
  work.partials += all.end - all.begin;
}

}  // namespace

std::vector<RowPlace> row_places(const core::Batch& batch) {
  std::vector<RowPlace> places(static_cast<std::size_t>(batch.rows()));
  for (const core::SequenceSlice& slice : batch.sequences) {
    for (int i = 0; i < slice.row_count; ++i) {
      places[slice.row_begin + i] = {slice.position + i, slice.block_begin};
    }
  }
  return places;
}

std::vector<BlockPlace> block_places(const core::Batch& batch) {
  std::vector<BlockPlace> places;
  places.reserve(batch.blocks.size());
  for (const core::BlockRef& ref : batch.blocks) places.push_back({ref.slab, ref.offset});
  return places;
}

AttentionWork attention_work(const core::Batch& batch, const AttentionShape& shape, int window) {
  AttentionWork work;
  for (const core::SequenceSlice& slice : batch.sequences) {
    add_slice(slice, shape.heads / shape.kv_heads, window, work);
  }
  return work;
}

}  // namespace bodega::ops::metal
