// What the host hands to the kernels: one plain struct a kernel. Compiled by both sides.
#pragma once

namespace bodega::ops::cuda {

// A weight matrix in fragment order. Unit = 16 rows by 64 columns, the rows of one mma tile; all
// units of a tile of rows follow one another. Lane l = 4 g + c of a warp owns rows g and g + 8 of
// the tile and columns 32 h + 8 c .. + 7 of each half h.
//   4 bits: 512 bytes a unit, 16 a lane: words (half 0, row g), (0, g + 8), (1, g), (1, g + 8);
//   nibble i
//           is column 2 i, nibble i + 4 column 2 i + 1, so that a mask gives an mma register.
//   8 bits: 1,024 bytes: for each half 16 bytes a lane, 8 of row g, then 8 of row g + 8.
//   A masked code is a subnormal fp16, the code times 2^-24, or times 2^-20 in the upper nibble of
//   a byte: exact, and free. So x of columns 2 and 3 of every 4 is divided by 16 for 4 bits, and
//   the factor of 2^24 waits in the row's scale. scales: (scale, bias) as 16-bit floats of rows g
//   and g + 8: [unit][group of the unit][g][4].
struct PackedWeights {
  const unsigned char* codes;
  const unsigned char* scales;
  int units;      // a tile of rows has: ceil(cols / 64)
  int tiles;      // of 16 rows, padded to an even number
  int rows;       // outputs, without padding
  int gate_tile;  // 1: tiles alternate, gate and up
};

// Sums over K run in this many slices at fixed places, added in order, whatever the number of rows.
constexpr int kSlices = 8;
constexpr int kUnitCols = 64;

struct PrepareArgs {
  const float* in;    // [T, in_stride]
  const int* rows;    // which rows, or null for all
  const float* norm;  // [cols] or null
  float eps;
  float norm_offset;
  int cols;
  int in_stride;
  int count;     // rows to prepare
  int group;     // 32 or 64: columns a sum covers
  int nibbles;   // 1: for 4-bit codes
  int x_stride;  // halves, a multiple of 64
  int sum_stride;
  unsigned short* x;  // [count, x_stride] fp16, scaled by a power of two of the row
  float* sums;        // [groups, sum_stride] of x, times 2^-24
  float* row_scale;   // [count] takes the power back
};

enum LinearEpilogue { kLinearStore, kLinearResidual, kLinearSwiGlu, kLinearGeGlu, kLinearLogits };

struct LinearArgs {
  PackedWeights w;
  const unsigned short* x;
  const float* sums;
  const float* row_scale;
  const float* bias;  // or null
  float* out;         // column out_column already added
  float* partial;     // [kSlices, tokens, tiles * 16] when slices run apart, else null
  int tokens;
  int x_stride;
  int sum_stride;
  int out_stride;
  int epilogue;
  float logit_scale;
  float soft_cap;
};

struct EmbedArgs {
  PackedWeights w;
  const int* tokens;
  float* out;
  int cols;
  float scale;
};

struct RotaryArgs {
  const int* positions;   // [T]
  const float* inv_freq;  // [half]
  float scale;
  int half;
  float* table;  // [T, half, 2] cos and sin
};

struct RopeArgs {
  float* qkv;  // [T, (heads + 2 kv_heads) * head_dim]
  const int* positions;
  const unsigned long long* row_blocks;  // [T] address of the block that holds the row's token
  const float* table;                    // null when nothing rotates
  const float* q_norm;
  const float* k_norm;
  float q_eps, q_offset, k_eps, k_offset;
  int heads, kv_heads, head_dim, rotary_half, interleaved;
  long long k_offset_in_block;  // halves, head 0
  long long v_offset_in_block;
};

// Keys are walked in tiles of kKeyTile, states are folded every kSplit keys: both at absolute
// positions.
constexpr int kKeyTile = 32;
constexpr int kSplit = 128;

// A tile of (token, head of the group) pairs of one sequence and the splits it covers.
struct AttentionItem {
  int block_begin;  // into the table of block addresses
  int position;     // of the sequence's first row
  int row_begin;    // of the batch
  int row_count;
  int first;  // flat index of the tile's first pair
  int split_begin;
  int split_end;
  int partial;  // index of the tile's first state, when its splits are folded afterwards; else -1
};

struct AttentionArgs {
  const float* qkv;
  float* out;  // [T, heads * head_dim]
  const AttentionItem* items;
  const unsigned long long* blocks;  // address of every block of the batch's tables
  const float* sinks;                // [heads] or null
  float* partial_out;                // [states, kv_heads, 16, head_dim]
  float* partial_max;                // [states, kv_heads, 16]
  float* partial_sum;
  int qkv_stride, out_stride;
  int heads, kv_heads, group;
  float scale;  // of the logits, without log2(e)
  float soft_cap;
  int window;
  long long k_offset_in_block, v_offset_in_block;  // halves, head 0
};

// A tile whose splits were computed apart.
struct FoldItem {
  int row_begin;
  int row_count;
  int first;
  int partial;
  int splits;
};

struct FoldArgs {
  AttentionArgs attention;
  const FoldItem* items;
};

}  // namespace bodega::ops::cuda
