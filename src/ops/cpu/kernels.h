#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/batch.h"

// The CPU kernels as plain functions of pointers and sizes: no MLX, no threads, no allocation, so
// that they link alone into tests, benchmarks and emulators. One table an instruction set, all made
// from the same bodies (kernel_bodies.h).
namespace bodega::ops::cpu {

inline constexpr int kGroup = 32;     // activations are quantised in groups of so many
inline constexpr int kMaxLanes = 16;  // widest vector of fp32
inline constexpr int kMaxHeadDim = 256;
inline constexpr int kAttentionTile = 64;     // keys in one softmax tile, at absolute boundaries
inline constexpr int kAttentionSplit = 1024;  // keys in one independent piece of a long cache
inline constexpr int kAttentionRows = 48;     // (token, head) pairs served by one read of the keys

// How a row of activations meets a matrix's codes, and with it how those codes are packed: by pairs
// or by quads of columns in a 32-bit lane.
enum class Activations : std::uint8_t {
  kInt16,    // pairs of int16
  kSplit16,  // the same 16 bits as two signed bytes, x = 256 * high + low, quads of bytes
  kInt8,     // quads of int8: the fast precision
};
constexpr int pack_of(Activations a) { return a == Activations::kInt16 ? 2 : 4; }
// 32-bit words of a row's group of 32 activations.
constexpr int words_of(Activations a) { return a == Activations::kInt8 ? 8 : 16; }

// Storage of a packed matrix: tiles of `lanes` rows, each contiguous; see packed_matrix.h.
enum class Storage : std::uint8_t { kAffine, kF32, kF16, kBF16 };

struct PackedView {
  const std::uint8_t* data = nullptr;
  std::size_t tile_bytes = 0;
  int cols = 0;
  Storage storage = Storage::kAffine;
  Activations activations = Activations::kInt16;
  int bits = 0;
  int group_size = 0;
  bool symmetric = false;    // bias = -2^(bits-1) * scale everywhere, so it is not stored
  bool wide_scales = false;  // fp32 instead of fp16
};

// Rows of activations as integers with one scale a group: x = scale * q. 16 bits keep the KL
// distance to fp32 near 2e-7, where 8 bits change 2.7 % of the greedy tokens.
//
// Rows lie interleaved in blocks of `interleave`, word by word (and group by group for the scales),
// so that a kernel reaches all rows of a block from one base address: q[block][cols /
// kGroup][words_of][interleave], scale[block][cols / kGroup][interleave]. A group's words are its
// columns in order; of split activations all high bytes come before the low ones.
struct QuantizedRows {
  std::int32_t* q = nullptr;
  float* scale = nullptr;
  float* sum = nullptr;          // scale * isum
  std::int32_t* isum = nullptr;  // sum of q over the group
  int cols = 0;
  int interleave = 1;  // interleave_of(rows)
  Activations activations = Activations::kInt16;
};

inline constexpr int kRowBlock = 8;
// Few rows take a path of their own, whose blocks are no wider than they need.
constexpr int interleave_of(int rows) {
  if (rows <= 2) return rows;
  return rows <= 4 ? 4 : kRowBlock;
}
constexpr int padded_rows(int rows) {
  const int block = interleave_of(rows);
  return (rows + block - 1) / block * block;
}

// The keys and values of one kv head of one layer of one sequence. Inside a block keys lie by
// dimension, [head_dim, kBlockTokens], and values by token, [kBlockTokens, head_dim]: so both sums
// of attention run over whole vectors.
struct KvView {
  const std::uint16_t* const* slabs = nullptr;  // fp16
  const core::BlockRef* blocks = nullptr;
  std::int64_t block_elements = 0;
  std::int64_t k_offset = 0;  // of the head inside a block
  std::int64_t v_offset = 0;
  int head_dim = 0;
};

struct AttentionRows {
  int count = 0;                        // <= kAttentionRows
  const float* q[kAttentionRows] = {};  // [head_dim], rotated
  int position[kAttentionRows] = {};
  float scale = 1.0F;
  float soft_cap = 0.0F;
  int window = 0;
};

// Softmax state of one row: max logit, sum of exponentials, weighted values (unnormalised).
struct AttentionState {
  float max = 0;
  float sum = 0;
  float* values = nullptr;  // [head_dim]
};

enum class Glu : std::uint8_t { kSilu, kGeluTanh };

struct Kernels {
  const char* name;
  int lanes;

  // What `linear` wants for codes of so many bits; `fast` is int8 where that is faster here.
  Activations (*activations)(int bits, bool fast);
  // out = x / sqrt(mean(x^2) + eps) * (weight + offset); cols a multiple of `lanes`.
  void (*rms_norm)(const float* x, const float* weight, float eps, float offset, int cols,
                   float* out);
  // Row `row` of `to`; cols a multiple of kGroup.
  void (*quantize)(const float* x, const QuantizedRows& to, int row);
  // out[m, 0:lanes] = tile0 * x[m], out[m, lanes:2*lanes] = tile1 * x[m]; tile1 < 0 = none.
  // out is [rows, 2 * lanes]; scratch has linear_scratch_bytes().
  void (*linear)(const PackedView& w, int tile0, int tile1, const QuantizedRows& x, int rows,
                 float* out, void* scratch);
  // The same for fp32, fp16 and bf16 weights; x is fp32 [rows, w.cols].
  void (*dense)(const PackedView& w, int tile0, int tile1, const float* x, int rows, float* out);
  // out = act(gate) * up; count a multiple of `lanes`.
  void (*glu)(Glu kind, const float* gate, const float* up, int count, float* out);
  // Rotates x [head_dim] in place; cos and sin are [half]. Pairs (i, i + half) or (2i, 2i + 1).
  void (*rotate)(float* x, const float* cos, const float* sin, int half, bool interleaved);
  void (*to_half)(const float* x, int count, std::uint16_t* out);  // count a multiple of lanes
  // Attends to the keys of one split for every row; state[r] is written, not added to.
  void (*attend)(const KvView& kv, const AttentionRows& rows, int split, AttentionState* state,
                 void* scratch);
  // into = into combined with `piece`, the next split in order.
  void (*fold)(AttentionState& into, const AttentionState& piece, int head_dim);
  // Adds the sink's logit (when there is one) and divides: out = values / sum.
  void (*finish)(AttentionState& state, const float* sink, int head_dim, float* out);
  // Index of the greatest value, ties to the lowest.
  int (*argmax)(const float* x, int count);
  void (*soft_cap)(float* x, int count, float cap);
};

// Bytes of scratch, aligned to 64, that `linear` and `attend` need on any instruction set.
inline constexpr std::size_t kScratchBytes = std::size_t{160} * 1024;

const Kernels& scalar_kernels();
#if defined(__x86_64__)
const Kernels& avx2_kernels();
const Kernels& avxvnni_kernels();
const Kernels& avx512_kernels();
#elif defined(__aarch64__)
const Kernels& neon_kernels();
#endif

// Names of the tables of this build, best first: "avx512", "avxvnni", "avx2", "scalar" on x86-64;
// "neon", "scalar" on 64-bit Arm.
std::span<const char* const> kernel_names();

// The table of that name, or null when there is none or this processor cannot run it.
const Kernels* find_kernels(std::string_view name);

// The best table this processor can run; BODEGA_CPU_ISA forces one by name, throws
// Error(kConfig) for a name that is unknown or cannot run here.
const Kernels& choose_kernels();

}  // namespace bodega::ops::cpu
