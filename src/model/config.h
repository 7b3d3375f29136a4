#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/request.h"

namespace bodega::model {

// How rotary frequencies are stretched for longer contexts (transformers modeling_rope_utils).
struct RopeScaling {
  enum class Kind {
    kNone,
    kLinear,   // all divided by `factor`
    kLlama3,   // Llama 3.1's: long waves divided, short ones kept, a ramp between
    kFactors,  // each divided by its own number (GGUF's rope_freqs.weight)
  };
  Kind kind = Kind::kNone;
  float factor = 1.0F;
  float low_freq_factor = 1.0F;
  float high_freq_factor = 4.0F;
  int original_context = 8192;
  std::vector<float> factors;  // kFactors: [head_dim / 2]
};

// The numbers that define a decoder, read from config.json or GGUF metadata and checked for sense.
struct ModelConfig {
  std::string architecture;  // "llama", "mistral", "qwen2", "qwen3"
  int hidden_size = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int intermediate_size = 0;
  int vocab_size = 0;
  int context_length = 0;
  float norm_eps = 1e-5F;
  float rope_theta = 10000.0F;
  RopeScaling rope_scaling;
  bool tied_embeddings = false;
  bool attention_bias = false;  // q, k, v
  bool output_bias = false;     // o
  bool mlp_bias = false;
  bool qk_norm = false;    // RMS norm over head_dim before rotary (Qwen3)
  int sliding_window = 0;  // 0 = full attention; else a token sees itself and window - 1 before
  std::vector<int> window_layers;  // layers with the window; empty = all, when sliding_window > 0
  std::string hidden_act = "silu";

  std::vector<core::TokenId> end_tokens;  // the union of all that the files declare, ascending
  std::string chat_template;              // "" when there is none
  std::string bos_token, eos_token;       // texts for the template
};

// Angle per position of each rotary pair, scaling applied: [head_dim / 2], computed in double.
// Pair i turns values i and i + head_dim / 2 of a head.
std::vector<float> rotary_frequencies(const ModelConfig& config);

// Throws Error(kBadModelFile) naming `file` and the field for numbers that define no decoder:
// zero or absurd sizes, heads that do not divide, an odd head_dim, end tokens outside the
// vocabulary.
void check_config(const ModelConfig& config, const std::string& file);

}  // namespace bodega::model
