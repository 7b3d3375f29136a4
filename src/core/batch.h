#pragma once

#include <cstdint>
#include <vector>

#include "core/request.h"

namespace bodega::core {

// Tokens whose keys and values one block holds.
inline constexpr int kBlockTokens = 16;

// Blocks that cover `tokens` positions.
constexpr int blocks_for(int tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

// Where a KV block lives: kernels reach it as (slab, offset) from the first commit.
struct BlockRef {
  std::int32_t slab = 0;
  std::int32_t offset = 0;  // index of the block inside its slab
};

// The rows one sequence contributes to a step: a prefill chunk, a decode row, or a verify window.
struct SequenceSlice {
  int row_begin = 0;    // first row of the flat batch
  int row_count = 0;    // >= 1
  int position = 0;     // absolute position of the first row; = tokens already in the cache
  int block_begin = 0;  // first entry of the block table in Batch::blocks
  int block_count = 0;  // covers positions [0, position + row_count)
};

// One step: a flat list of T tokens of many sequences side by side; no padding.
struct Batch {
  std::vector<TokenId> tokens;             // [T]
  std::vector<SequenceSlice> sequences;    // in row order, rows contiguous
  std::vector<BlockRef> blocks;            // the block tables, one after the other
  std::vector<std::int32_t> sampled_rows;  // rows whose logits are wanted, ascending

  int rows() const { return static_cast<int>(tokens.size()); }
};

}  // namespace bodega::core
