#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

// The operations a forward pass is made of. A model records a list of these; nothing here computes.
// Shapes: T = rows of the step, S = sampled rows. Activations are fp32 on the CPU.
namespace bodega::ops {

// Indices into the plan's tables.
using SlotId = int;    // an activation buffer, [T, cols]
using MatrixId = int;  // a weight matrix, [rows, cols], out = in * W^T
using VectorId = int;  // a small fp32 vector: norm weight, bias, rotary frequencies, sinks

// RMS norm over the last axis, y = x / sqrt(mean(x^2) + eps) * (weight + weight_offset)
// (arXiv:1910.07467; Gemma stores weight - 1, so its offset is 1).
struct Norm {
  VectorId weight = -1;
  float eps = 1e-5F;
  float weight_offset = 0.0F;
};

// The layer of the KV pool a record reads or writes: layers with the same window share a group, and
// a group has its own block table.
struct KvLayer {
  int group = 0;
  int layer = 0;  // within the group
};

// out[t] = table[token[t]] * scale
struct Embed {
  MatrixId table = -1;
  SlotId out = -1;
  float scale = 1.0F;
};

enum class Epilogue {
  kStore,     // out = y
  kResidual,  // out += y
  kSwiGlu,    // W is [gate; up], out = silu(y_gate) * y_up           (arXiv:2002.05202)
  kGeGlu,     // W is [gate; up], out = gelu_tanh(y_gate) * y_up
};

// y = norm(in) * W^T + bias, then the epilogue.
struct QuantLinear {
  SlotId in = -1;
  std::optional<Norm> norm = {};
  MatrixId weight = -1;
  std::optional<VectorId> bias = {};
  Epilogue epilogue = Epilogue::kStore;
  SlotId out = -1;
  int out_column = 0;  // first column written, for matrices of different formats side by side
};

// What attention needs to know of the heads; qkv is [T, (heads + 2 * kv_heads) * head_dim].
struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
};

// Normalises (where asked) and rotates q and k by absolute position, q in place, and writes k and v
// to the pool in fp16 (arXiv:2104.09864).
struct RopeAndCacheWrite {
  SlotId qkv = -1;
  AttentionShape shape = {};
  int rotary_dim = 0;         // the first so many of head_dim; 0 = no rotation
  bool interleaved = false;   // pairs (2i, 2i+1) instead of (i, i + rotary_dim / 2)
  VectorId inv_freq = -1;     // [rotary_dim / 2]
  float rotary_scale = 1.0F;  // multiplies cos and sin (YaRN's attention factor)
  std::optional<Norm> q_norm = {};
  std::optional<Norm> k_norm = {};
  KvLayer kv = {};
};

// Causal attention of every row over its own sequence's blocks.
struct PagedAttention {
  SlotId qkv = -1;  // q part, rotated
  SlotId out = -1;  // [T, heads * head_dim]
  AttentionShape shape = {};
  float scale = 1.0F;
  int window = 0;                      // row at p sees keys p-window+1 .. p; 0 = all
  float soft_cap = 0.0F;               // s = cap * tanh(s / cap); 0 = off
  std::optional<VectorId> sinks = {};  // [heads], one extra logit each that takes probability away
  KvLayer kv = {};
};

// Mixture of experts: out += sum over the chosen experts, in index order, of
// weight_e * down_e(silu(gate_e x) * up_e x).
struct Moe {
  SlotId in = -1;
  SlotId out = -1;
  std::optional<Norm> norm = {};
  MatrixId router = -1;
  std::vector<MatrixId> gate_up;  // one an expert, [gate; up]
  std::vector<MatrixId> down;     // one an expert
  int top_k = 1;
  bool normalize_top_k = true;  // softmax over the chosen only
  float routed_scale = 1.0F;
};

// logits = norm(in[sampled rows]) * W^T, fp32 [S, vocab].
struct LmHead {
  SlotId in = -1;
  std::optional<Norm> norm = {};
  MatrixId weight = -1;
  std::optional<VectorId> bias = {};
  float soft_cap = 0.0F;
  float scale = 1.0F;
};

using Record = std::variant<Embed, QuantLinear, RopeAndCacheWrite, PagedAttention, Moe, LmHead>;

// "quant_linear", the name a user sees in `inspect` and in self-check messages.
std::string record_name(const Record& record);

}  // namespace bodega::ops
