#pragma once

#include <vector>

#include "core/batch.h"
#include "ops/metal/params.h"
#include "ops/records.h"

namespace bodega::ops::metal {

inline constexpr int kAttentionSplit = 512;  // keys, as kernels/paged_attention.metal cuts them
inline constexpr int kAttentionPairs = 8;    // (token, head) pairs of one threadgroup

// What the attention and rotary kernels need to know of a step, the same for all layers.
std::vector<RowPlace> row_places(const core::Batch& batch);
std::vector<BlockPlace> block_places(const core::Batch& batch);

// The attention work of one step for one kv head (heads differ only in their offsets), and the rows
// whose splits are worked on apart and folded afterwards.
struct AttentionWork {
  std::vector<AttentionItem> items;
  std::vector<FoldItem> folds;
  int partials = 0;  // states, each [heads, head_dim]
};
// `window`: keys a row sees; 0 = all.
AttentionWork attention_work(const core::Batch& batch, const AttentionShape& shape, int window);

// Rows of one block of prepared inputs.
constexpr int interleave_of(int rows) {
  if (rows <= 2) return rows;
  return rows <= 4 ? 4 : 8;
}

}  // namespace bodega::ops::metal
