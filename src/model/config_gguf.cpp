#include "model/config_gguf.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>

namespace bodega::model {
namespace {

// One architecture's keys: "llama.block_count", with errors that name them in full.
class Keys {
 public:
  Keys(const GgufHeader& header, std::string architecture, const std::string& file)
      : header_(header), prefix_(std::move(architecture) + "."), file_(file) {}

  std::string name(const char* key) const { return prefix_ + key; }
  bool has(const char* key) const { return header_.has(name(key)); }

  // Per-layer lists are accepted where all layers agree.
  int size(const char* key) const {
    const auto values = header_.integers(name(key));
    if (!values || values->empty()) fail_file(file_, "metadata '" + name(key) + "' is missing.");
    for (const std::int64_t value : *values) {
      if (value != values->front()) {
        fail_file(file_, "metadata '" + name(key) + "' differs by layer, which is not supported.");
      }
    }
    if (values->front() < 0 || values->front() > std::numeric_limits<int>::max()) {
      fail_file(file_, "metadata '" + name(key) + "' is out of range.");
    }
    return static_cast<int>(values->front());
  }
  int size_or(const char* key, int otherwise) const { return has(key) ? size(key) : otherwise; }
  double number_or(const char* key, double otherwise) const {
    return header_.number(name(key)).value_or(otherwise);
  }
  std::string text_or(const char* key, const char* otherwise) const {
    return header_.string(name(key)).value_or(otherwise);
  }
  [[noreturn]] void refuse(const char* key) const {
    fail_file(file_, "metadata '" + name(key) + "' asks for something that is not supported.");
  }

 private:
  const GgufHeader& header_;
  std::string prefix_;
  const std::string& file_;
};

// Keys that change the computation of a llama-family model and that we do not implement.
void refuse_unsupported(const Keys& keys) {
  for (const char* key :
       {"expert_count", "attention.sliding_window_pattern", "attention.scale",
        "attention.clamp_kqv", "attention.max_alibi_bias", "logit_scale", "attn_logit_softcapping",
        "final_logit_softcapping", "residual_scale", "embedding_scale"}) {
    if (keys.number_or(key, 0.0) != 0.0) keys.refuse(key);
  }
}

RopeScaling read_scaling(const Keys& keys, const std::string& file) {
  RopeScaling scaling;
  const std::string type = keys.text_or("rope.scaling.type", "none");
  const double factor =
      keys.number_or("rope.scaling.factor", keys.number_or("rope.scale_linear", 1.0));
  if (type != "none" && type != "linear") {
    fail_file(file, "rope scaling of type '" + printable(type) + "' is not supported.");
  }
  if (factor != 1.0 && factor != 0.0) {
    scaling.kind = RopeScaling::Kind::kLinear;
    scaling.factor = static_cast<float>(factor);
  }
  return scaling;
}

std::set<std::string> tensor_names(const GgufHeader& header) {
  std::set<std::string> names;
  for (const TensorEntry& tensor : header.tensors()) names.insert(tensor.name);
  return names;
}

void read_attention(const Keys& keys, ModelConfig& config) {
  config.heads = keys.size("attention.head_count");
  config.kv_heads = keys.size_or("attention.head_count_kv", config.heads);
  const int divided = config.heads > 0 ? config.hidden_size / config.heads : 0;
  config.head_dim = keys.size_or("attention.key_length", divided);
  if (keys.size_or("attention.value_length", config.head_dim) != config.head_dim) {
    keys.refuse("attention.value_length");
  }
  if (keys.size_or("rope.dimension_count", config.head_dim) != config.head_dim) {
    keys.refuse("rope.dimension_count");
  }
  config.sliding_window = keys.size_or("attention.sliding_window", 0);
  if (config.sliding_window > 0 && config.architecture != "llama") {
    keys.refuse("attention.sliding_window");
  }
}

void read_structure(const std::set<std::string>& names, ModelConfig& config) {
  config.tied_embeddings = !names.contains("output.weight");
  config.attention_bias = names.contains("blk.0.attn_q.bias");
  config.output_bias = names.contains("blk.0.attn_output.bias");
  config.mlp_bias = names.contains("blk.0.ffn_down.bias");
  config.qk_norm = names.contains("blk.0.attn_q_norm.weight");
}

std::string named_template(const GgufHeader& header) {
  if (auto text = header.string("tokenizer.chat_template")) return *text;
  const auto names = header.strings("tokenizer.chat_templates");
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (auto text = header.string("tokenizer.chat_template." + name)) return *text;
  }
  return "";
}

// GGUF has no room for the list in generation_config.json, so files declare one end token and leave
// the others to their well-known texts, as llama.cpp reads them.
constexpr std::array<std::string_view, 9> kEndTexts = {
    "<|eot_id|>",      "<|im_end|>", "<|end|>",         "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>", "<|eom_id|>", "<|end_of_turn|>", "</s>"};
constexpr std::int32_t kControlToken = 3;  // tokenizer.ggml.token_type

std::vector<core::TokenId> find_end_tokens(const GgufHeader& header,
                                           const core::GgufVocabulary& vocabulary) {
  std::set<core::TokenId> ids;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id", "tokenizer.ggml.eos_token_ids"}) {
    for (const std::int64_t id : header.integers(key).value_or(std::vector<std::int64_t>{})) {
      // Beyond 31 bits is as wrong as outside the vocabulary: check_config names it.
      ids.insert(static_cast<core::TokenId>(std::clamp<std::int64_t>(id, -1, 0x7FFFFFFF)));
    }
  }
  if (vocabulary.eos >= 0) ids.insert(vocabulary.eos);
  for (std::size_t id = 0; id < vocabulary.types.size(); ++id) {
    if (vocabulary.types[id] == kControlToken &&
        std::ranges::count(kEndTexts, vocabulary.tokens[id]) > 0) {
      ids.insert(static_cast<core::TokenId>(id));
    }
  }
  return {ids.begin(), ids.end()};
}

std::int32_t read_id(const GgufHeader& header, const char* key, std::int32_t otherwise,
                     std::size_t tokens, const std::string& file) {
  const std::int64_t id = header.integer(key).value_or(otherwise);
  if (id < -1 || id >= static_cast<std::int64_t>(tokens)) {
    fail_file(file, std::string("metadata '") + key + "' is " + std::to_string(id) +
                        ", outside the vocabulary of " + std::to_string(tokens) + ".");
  }
  return static_cast<std::int32_t>(id);
}

template <typename T>
void check_length(const std::vector<T>& values, std::size_t tokens, const char* key,
                  const std::string& file) {
  if (values.empty() || values.size() == tokens) return;
  fail_file(file, std::string("metadata '") + key + "' has " + std::to_string(values.size()) +
                      " entries for " + std::to_string(tokens) + " tokens.");
}

std::string token_text(const core::GgufVocabulary& vocabulary, std::int32_t id) {
  return id >= 0 ? vocabulary.tokens[id] : std::string();
}

void check_kind(const GgufHeader& header, const std::string& file) {
  const std::string kind = header.string("general.type").value_or("model");
  if (kind != "model") fail_file(file, "holds a '" + printable(kind) + "', not a model.");
  if (header.integer("split.count").value_or(1) > 1) {
    fail_file(file, "is one part of a split model; merge the parts into one file first.");
  }
  if (header.integer("general.quantization_version").value_or(2) != 2) {
    fail_file(file, "uses an old quantization version; only version 2 is supported.");
  }
}

}  // namespace

ModelConfig config_from_gguf(const GgufHeader& header, const std::string& file) {
  check_kind(header, file);
  ModelConfig config;
  config.architecture = header.string("general.architecture").value_or("");
  constexpr std::array<std::string_view, 3> kKnown = {"llama", "qwen2", "qwen3"};
  if (std::ranges::count(kKnown, config.architecture) == 0) {
    fail_file(file, "the architecture '" + printable(config.architecture) +
                        "' is not supported (llama, qwen2 and qwen3 are).");
  }
  const Keys keys(header, config.architecture, file);
  refuse_unsupported(keys);
  const core::GgufVocabulary vocabulary = vocabulary_from_gguf(header, file);
  config.hidden_size = keys.size("embedding_length");
  config.layers = keys.size("block_count");
  config.intermediate_size = keys.size("feed_forward_length");
  config.context_length = keys.size("context_length");
  config.vocab_size = keys.size_or("vocab_size", static_cast<int>(vocabulary.tokens.size()));
  config.norm_eps = static_cast<float>(keys.number_or("attention.layer_norm_rms_epsilon", 0.0));
  config.rope_theta = static_cast<float>(keys.number_or("rope.freq_base", 10000.0));
  config.rope_scaling = read_scaling(keys, file);
  read_attention(keys, config);
  read_structure(tensor_names(header), config);
  config.end_tokens = find_end_tokens(header, vocabulary);
  config.chat_template = named_template(header);
  config.bos_token = token_text(vocabulary, vocabulary.bos);
  config.eos_token = token_text(vocabulary, vocabulary.eos);
  check_config(config, file);
  return config;
}

core::GgufVocabulary vocabulary_from_gguf(const GgufHeader& header, const std::string& file) {
  const std::string prefix = "tokenizer.ggml.";
  core::GgufVocabulary result;
  result.model = header.string(prefix + "model").value_or("");
  result.pre = header.string(prefix + "pre").value_or("");
  result.tokens = header.strings(prefix + "tokens").value_or(std::vector<std::string>{});
  const std::size_t size = result.tokens.size();
  if (result.model.empty() || size == 0 || size > (std::size_t{1} << 24)) {
    fail_file(file, "has no usable tokenizer (tokenizer.ggml.model and .tokens).");
  }
  for (const std::int64_t type :
       header.integers(prefix + "token_type").value_or(std::vector<std::int64_t>{})) {
    result.types.push_back(static_cast<std::int32_t>(type));
  }
  check_length(result.types, size, "tokenizer.ggml.token_type", file);
  result.scores = header.floats(prefix + "scores").value_or(std::vector<float>{});
  check_length(result.scores, size, "tokenizer.ggml.scores", file);
  result.merges = header.strings(prefix + "merges").value_or(std::vector<std::string>{});
  // What absent keys mean for each kind is llama.cpp's reading.
  const bool sentence_piece = result.model == "llama";
  result.bos = read_id(header, "tokenizer.ggml.bos_token_id", sentence_piece ? 1 : -1, size, file);
  result.eos = read_id(header, "tokenizer.ggml.eos_token_id", sentence_piece ? 2 : -1, size, file);
  result.unknown =
      read_id(header, "tokenizer.ggml.unknown_token_id", sentence_piece ? 0 : -1, size, file);
  result.add_bos = header.boolean(prefix + "add_bos_token").value_or(sentence_piece);
  result.add_eos = header.boolean(prefix + "add_eos_token").value_or(false);
  result.add_space_prefix = header.boolean(prefix + "add_space_prefix").value_or(sentence_piece);
  return result;
}

}  // namespace bodega::model
