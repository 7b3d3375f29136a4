#include "model/names.h"

#include <array>
#include <cctype>
#include <utility>

#include "base/utf8.h"

namespace bodega::model {
namespace {

constexpr std::size_t kLongestQuote = 100;

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 4> kGlobalNames = {{
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"rope_freqs", "rope_freqs"},
}};

constexpr std::array<Pair, 11> kLayerNames = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

template <std::size_t size>
std::optional<std::string> translate(const std::array<Pair, size>& names, std::string_view name) {
  for (const auto& [from, to] : names) {
    if (name == from) return std::string(to);
  }
  return std::nullopt;
}

// A layer's number as exporters write it: digits without leading zeros.
bool is_layer_number(std::string_view text) {
  if (text.empty() || text.size() > 6 || (text.size() > 1 && text[0] == '0')) return false;
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return false;
  }
  return true;
}

}  // namespace

std::string printable(std::string_view text) {
  const std::string valid = replace_invalid_utf8(text.substr(0, kLongestQuote));
  std::string result;
  for (const char c : valid) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    result += control ? '?' : c;
  }
  if (text.size() > kLongestQuote) result += "...";
  return result;
}

std::optional<std::string> hugging_face_name(std::string_view gguf_name) {
  const std::size_t dot = gguf_name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view kind = gguf_name.substr(dot);  // ".weight" or ".bias"
  if (kind != ".weight" && kind != ".bias") return std::nullopt;
  const std::string_view module = gguf_name.substr(0, dot);
  if (!module.starts_with("blk.")) {
    auto name = translate(kGlobalNames, module);
    return name ? std::optional(*name + std::string(kind)) : std::nullopt;
  }
  const std::size_t end = module.find('.', 4);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view layer = module.substr(4, end - 4);
  const auto name = translate(kLayerNames, module.substr(end + 1));
  if (!name || !is_layer_number(layer)) return std::nullopt;
  return "model.layers." + std::string(layer) + "." + *name + std::string(kind);
}

std::string text_model_name(std::string_view name) {
  constexpr std::string_view kOuter = "language_model.";
  constexpr std::string_view kInner = "model.language_model.";
  if (name.starts_with(kInner)) return "model." + std::string(name.substr(kInner.size()));
  if (name.starts_with(kOuter)) return std::string(name.substr(kOuter.size()));
  return std::string(name);
}

bool is_harmless_leftover(std::string_view name) {
  for (const std::string_view end :
       {".rotary_emb.inv_freq", ".self_attn.bias", ".self_attn.masked_bias"}) {
    if (name.ends_with(end)) return true;
  }
  return name == "rope_freqs.weight";
}

}  // namespace bodega::model
