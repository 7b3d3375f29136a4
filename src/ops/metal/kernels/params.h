// What a dispatch is told, the same text for C++ and for Metal: 32-bit numbers only, so that both
// compilers lay them out alike. Without a guard: C++ includes it through ops/metal/params.h, inside
// a namespace; Metal gets it before each kernel.

struct PrepareParams {
  int rows;        // valid ones; the rest of the last block becomes zeros
  int cols;        // a multiple of the group size
  int interleave;  // rows of one block: 1, 2, 4 or 8
  int has_rows;    // 1: row i of the result is input row index[i]
  int has_norm;
  float eps;
  float weight_offset;
};

struct LinearParams {
  int rows;
  int cols;
  int interleave;
  int outputs;     // columns written; for a gated unit half of the matrix's rows
  int out_stride;  // floats from one output row to the next
  int out_column;  // first column written
  int has_bias;
  float scale;     // lm_head: logits * scale, then the cap
  float soft_cap;  // 0 = none
};

struct EmbedParams {
  int cols;
  float scale;
};

struct RopeParams {
  int heads;
  int kv_heads;
  int rotary_half;  // pairs; 0 = no rotation
  int interleaved;  // pairs (2i, 2i+1) instead of (i, i + rotary_half)
  float rotary_scale;
  int has_q_norm;
  int has_k_norm;
  float q_eps;
  float k_eps;
  float q_offset;
  float k_offset;
  int block_elements;     // of one KV block, all layers
  int k_offset_elements;  // of this layer's keys inside a block; head after head
  int v_offset_elements;
};

// Where a row of the batch stands: its position, and its sequence's blocks in the table.
struct RowPlace {
  int position;
  int block_begin;
};

// One KV block: slab and index inside it, as core::BlockRef.
struct BlockPlace {
  int slab;
  int offset;
};

struct AttentionParams {
  int heads;
  int kv_heads;
  int row_stride;  // floats of a row of qkv
  int out_stride;
  float scale;
  float soft_cap;  // 0 = none
  int window;      // 0 = all keys
  int has_sinks;
  int block_elements;
  int k_offset_elements;
  int v_offset_elements;
};

// Up to eight (token, head of the group) pairs of one sequence that read the same keys, and the
// splits they walk.
struct AttentionItem {
  int row;       // first row of the sequence's slice in the batch
  int position;  // of that row
  int block_begin;
  int first_pair;  // token * group + head, counted from that row
  int pair_count;
  int split_begin;
  int split_end;
  int partial;  // where the state goes when another dispatch folds it; -1 = finish here
};

// A row whose splits lie in `splits` consecutive partial states.
struct FoldItem {
  int row;
  int partial;
  int splits;
};
