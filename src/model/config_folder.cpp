#include "model/config_folder.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/names.h"

namespace bodega::model {
namespace {

namespace json = boost::json;

// Settings of relatives that change the computation; any other value than this one is refused.
constexpr std::array<std::pair<const char*, double>, 13> kNeutralNumbers = {{
    {"partial_rotary_factor", 1.0},
    {"num_experts", 0.0},
    {"num_local_experts", 0.0},
    {"attn_logit_softcapping", 0.0},
    {"final_logit_softcapping", 0.0},
    {"attention_multiplier", 1.0},
    {"embedding_multiplier", 1.0},
    {"residual_multiplier", 1.0},
    {"logits_scaling", 1.0},
    {"logit_scale", 1.0},
    {"clip_qkv", 0.0},
    {"query_pre_attn_scalar", 0.0},
    {"attention_chunk_size", 0.0},
}};

constexpr std::array kUnsupportedFlags = {
    "rope_traditional", "rope_interleaved", "use_qk_norm",          "qk_layernorm", "alibi",
    "use_mrope",        "parallel_attn",    "use_parallel_residual"};

constexpr std::array kUnsupportedParts = {"text_config", "vision_config", "audio_config",
                                          "no_rope_layers"};

void refuse_unsupported(const JsonFields& config) {
  for (const auto& [key, neutral] : kNeutralNumbers) {
    if (config.number(key).value_or(neutral) != neutral) config.fail(key, "is not supported.");
  }
  for (const char* key : kUnsupportedFlags) {
    if (config.flag(key).value_or(false)) config.fail(key, "is not supported.");
  }
  for (const char* key : kUnsupportedParts) {
    if (config.find(key) != nullptr) config.fail(key, "is not supported.");
  }
}

std::string read_architecture(const JsonFields& config) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kKnown = {{
      {"llama", "LlamaForCausalLM"},
      {"mistral", "MistralForCausalLM"},
      {"qwen2", "Qwen2ForCausalLM"},
      {"qwen3", "Qwen3ForCausalLM"},
  }};
  const std::string type = config.text("model_type").value_or("");
  const auto known = std::ranges::find(kKnown, type, &decltype(kKnown)::value_type::first);
  if (known == kKnown.end()) {
    config.fail("model_type",
                "is '" + printable(type) +
                    "', which is not supported (llama, mistral, qwen2 and qwen3 are).");
  }
  const json::value* classes = config.find("architectures");
  if (classes == nullptr) return type;
  if (!classes->is_array()) config.fail("architectures", "is not a list.");
  const json::array& list = classes->get_array();
  const bool found = std::ranges::any_of(list, [&](const json::value& name) {
    return name.is_string() && std::string_view(name.get_string()) == known->second;
  });
  if (!found && !list.empty()) {
    config.fail("architectures", "does not name " + std::string(known->second) + ".");
  }
  return type;
}

float required_float(const JsonFields& fields, const char* key) {
  const auto value = fields.number(key);
  if (!value) fields.fail(key, "is missing.");
  return static_cast<float>(*value);
}

// `scaling` is config.json's rope_scaling, or rope_parameters of newer files.
RopeScaling read_scaling(const JsonFields& scaling) {
  const auto old_name = scaling.text("type");
  const std::string type = scaling.text("rope_type").value_or(old_name.value_or("default"));
  RopeScaling result;
  if (type == "default") return result;
  result.factor = required_float(scaling, "factor");
  if (type == "linear") {
    result.kind = RopeScaling::Kind::kLinear;
  } else if (type == "llama3") {
    result.kind = RopeScaling::Kind::kLlama3;
    result.low_freq_factor = required_float(scaling, "low_freq_factor");
    result.high_freq_factor = required_float(scaling, "high_freq_factor");
    result.original_context = scaling.size("original_max_position_embeddings");
  } else {
    scaling.fail(scaling.find("rope_type") != nullptr ? "rope_type" : "type",
                 "is '" + printable(type) + "', which is not supported (linear and llama3 are).");
  }
  return result;
}

void read_rotary(const JsonFields& config, ModelConfig& result) {
  auto theta = config.number("rope_theta");
  auto scaling = config.object("rope_parameters");
  if (scaling) {
    if (scaling->find("full_attention") != nullptr ||
        scaling->find("sliding_attention") != nullptr) {
      config.fail("rope_parameters", "differs by layer, which is not supported.");
    }
    if (const auto inner = scaling->number("rope_theta")) theta = inner;
    if (scaling->number("partial_rotary_factor").value_or(1.0) != 1.0) {
      scaling->fail("partial_rotary_factor", "is not supported.");
    }
  } else {
    scaling = config.object("rope_scaling");
  }
  result.rope_theta = static_cast<float>(theta.value_or(10000.0));
  if (scaling) result.rope_scaling = read_scaling(*scaling);
}

// The layers that `layer_types` calls sliding; nothing when the list is absent.
std::optional<std::vector<int>> sliding_layers(const JsonFields& config, int layers) {
  const json::value* value = config.find("layer_types");
  if (value == nullptr) return std::nullopt;
  if (!value->is_array() || value->get_array().size() != static_cast<std::size_t>(layers)) {
    config.fail("layer_types", "is not a list of one entry a layer.");
  }
  std::vector<int> result;
  for (int layer = 0; layer < layers; ++layer) {
    const json::value& type = value->get_array()[layer];
    if (type == "sliding_attention") {
      result.push_back(layer);
    } else if (type != "full_attention") {
      config.fail("layer_types", "has a kind of attention that is not supported.");
    }
  }
  return result;
}

// The window of transformers' configuration classes, their defaults included.
int declared_window(const JsonFields& config, const std::string& architecture) {
  constexpr int kDefaultWindow = 4096;
  if (architecture == "llama") return config.size_or("sliding_window", 0);
  if (architecture == "mistral") {
    const bool absent = !config.json().contains("sliding_window");
    return absent ? kDefaultWindow : config.size_or("sliding_window", 0);
  }
  if (!config.flag("use_sliding_window").value_or(false)) return 0;
  return config.size_or("sliding_window", kDefaultWindow);
}

void read_window(const JsonFields& config, ModelConfig& result) {
  constexpr int kDefaultFullLayers = 28;  // Qwen2Config.max_window_layers
  result.sliding_window = declared_window(config, result.architecture);
  auto listed = sliding_layers(config, result.layers);
  if (result.sliding_window == 0) {
    if (listed && !listed->empty()) {
      config.fail("layer_types", "has sliding_attention, but there is no window.");
    }
    return;
  }
  if (!listed && result.architecture == "llama") {
    config.fail("sliding_window", "is set for llama, which has none without layer_types.");
  }
  if (!listed && result.architecture != "mistral") {
    listed.emplace();
    const int first = config.size_or("max_window_layers", kDefaultFullLayers);
    for (int layer = first; layer < result.layers; ++layer) listed->push_back(layer);
  }
  if (!listed) return;  // Mistral: every layer
  if (listed->empty()) result.sliding_window = 0;
  result.window_layers = *std::move(listed);
}

void read_biases(const JsonFields& config, ModelConfig& result) {
  const bool declared = config.flag("attention_bias").value_or(false);
  const bool qwen2 = result.architecture == "qwen2";
  if (declared && (qwen2 || result.architecture == "mistral")) {
    config.fail("attention_bias", "is not supported for " + result.architecture + ".");
  }
  result.attention_bias = qwen2 || declared;
  result.output_bias = declared;
  result.mlp_bias = config.flag("mlp_bias").value_or(false);
  if (result.mlp_bias && result.architecture != "llama") {
    config.fail("mlp_bias", "is not supported for " + result.architecture + ".");
  }
}

}  // namespace

ModelConfig config_from_json(const JsonFields& config) {
  ModelConfig result;
  result.architecture = read_architecture(config);
  refuse_unsupported(config);
  result.hidden_size = config.size("hidden_size");
  result.layers = config.size("num_hidden_layers");
  result.heads = config.size("num_attention_heads");
  result.kv_heads = config.size_or("num_key_value_heads", result.heads);
  result.intermediate_size = config.size("intermediate_size");
  result.vocab_size = config.size("vocab_size");
  result.context_length = config.size("max_position_embeddings");
  const int divided = result.heads > 0 ? result.hidden_size / result.heads : 0;
  result.head_dim = config.size_or("head_dim", result.architecture == "qwen3" ? 128 : divided);
  if (config.find("head_dim") == nullptr && divided * result.heads != result.hidden_size) {
    config.fail("hidden_size", "is no multiple of num_attention_heads.");
  }
  result.norm_eps = static_cast<float>(config.number("rms_norm_eps").value_or(1e-6));
  const std::string act = config.text("hidden_act").value_or("silu");
  if (act != "silu" && act != "swish") config.fail("hidden_act", "is not silu.");
  result.tied_embeddings = config.flag("tie_word_embeddings").value_or(false);
  result.qk_norm = result.architecture == "qwen3";
  read_rotary(config, result);
  check_config(result, config.file());
  read_window(config, result);
  read_biases(config, result);
  return result;
}

}  // namespace bodega::model
