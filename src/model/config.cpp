#include "model/config.h"

#include <cmath>
#include <numbers>
#include <string>

#include "model/tensor_entry.h"

namespace bodega::model {
namespace {

void check_range(const std::string& file, const char* field, int value, int max) {
  if (value >= 1 && value <= max) return;
  fail_file(file, std::string(field) + " is " + std::to_string(value) + "; 1 to " +
                      std::to_string(max) + " make sense.");
}

void check_sizes(const ModelConfig& config, const std::string& file) {
  check_range(file, "hidden_size", config.hidden_size, 1 << 17);
  check_range(file, "num_hidden_layers", config.layers, 1 << 10);
  check_range(file, "num_attention_heads", config.heads, 1 << 12);
  check_range(file, "num_key_value_heads", config.kv_heads, config.heads);
  check_range(file, "head_dim", config.head_dim, 1 << 10);
  check_range(file, "intermediate_size", config.intermediate_size, 1 << 20);
  check_range(file, "vocab_size", config.vocab_size, 1 << 24);
  check_range(file, "max_position_embeddings", config.context_length, 1 << 30);
  if (config.heads % config.kv_heads != 0) {
    fail_file(file, std::to_string(config.heads) + " attention heads cannot share " +
                        std::to_string(config.kv_heads) + " key-value heads.");
  }
  if (config.head_dim % 2 != 0) {
    fail_file(file, "head_dim is " + std::to_string(config.head_dim) + ", but rotary needs pairs.");
  }
}

void check_numbers(const ModelConfig& config, const std::string& file) {
  if (!(config.norm_eps > 0.0F && config.norm_eps < 1.0F)) {
    fail_file(file, "rms_norm_eps must lie between 0 and 1.");
  }
  if (!(std::isfinite(config.rope_theta) && config.rope_theta >= 1.0F)) {
    fail_file(file, "rope_theta must be at least 1.");
  }
  const RopeScaling& scaling = config.rope_scaling;
  if (!(std::isfinite(scaling.factor) && scaling.factor > 0.0F)) {
    fail_file(file, "the rope scaling factor must be positive.");
  }
  if (scaling.kind == RopeScaling::Kind::kLlama3 &&
      (!(scaling.low_freq_factor > 0.0F && scaling.high_freq_factor > scaling.low_freq_factor) ||
       scaling.original_context < 1)) {
    fail_file(file,
              "llama3 rope scaling needs 0 < low_freq_factor < high_freq_factor and a positive "
              "original_max_position_embeddings.");
  }
  for (const float factor : scaling.factors) {
    if (!(std::isfinite(factor) && factor > 0.0F)) {
      fail_file(file, "a rotary frequency factor is not a positive number.");
    }
  }
}

// transformers _compute_llama3_parameters.
double llama3_frequency(double frequency, const RopeScaling& scaling) {
  const double wave = 2.0 * std::numbers::pi / frequency;
  const double context = scaling.original_context;
  if (wave > context / scaling.low_freq_factor) return frequency / scaling.factor;
  if (wave < context / scaling.high_freq_factor) return frequency;
  const double smooth = (context / wave - scaling.low_freq_factor) /
                        (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1.0 - smooth) * frequency / scaling.factor + smooth * frequency;
}

}  // namespace

std::vector<float> rotary_frequencies(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const int pairs = config.head_dim / 2;
  std::vector<float> result;
  for (int i = 0; i < pairs; ++i) {
    double frequency =
        std::pow(static_cast<double>(config.rope_theta), -static_cast<double>(i) / pairs);
    switch (scaling.kind) {
      case RopeScaling::Kind::kNone:
        break;
      case RopeScaling::Kind::kLinear:
        frequency /= scaling.factor;
        break;
      case RopeScaling::Kind::kLlama3:
        frequency = llama3_frequency(frequency, scaling);
        break;
      case RopeScaling::Kind::kFactors:
        frequency /= scaling.factors.at(i);
        break;
    }
    result.push_back(static_cast<float>(frequency));
  }
  return result;
}

void check_config(const ModelConfig& config, const std::string& file) {
  check_sizes(config, file);
  check_numbers(config, file);
  for (const core::TokenId token : config.end_tokens) {
    if (token < 0 || token >= config.vocab_size) {
      fail_file(file, "the end token " + std::to_string(token) + " is outside the vocabulary of " +
                          std::to_string(config.vocab_size) + ".");
    }
  }
}

}  // namespace bodega::model
