#include "model/llama.h"

#include <cmath>

namespace bodega::model {
namespace {

using ops::Epilogue;
using ops::Norm;
using ops::WeightSourcePtr;

// What a layer's records share: its activations and its place in the KV pool.
struct Slots {
  ops::SlotId x;          // residual stream, [T, hidden]
  ops::SlotId qkv;        // [T, (heads + 2 * kv_heads) * head_dim]
  ops::SlotId attention;  // [T, heads * head_dim]
  ops::SlotId gated;      // [T, intermediate]
};

class Recorder {
 public:
  Recorder(const Checkpoint& checkpoint, int context_length)
      : file_(checkpoint), c_(checkpoint.config()), context_length_(context_length) {}

  ops::Plan record() {
    const ops::MatrixId embedding =
        plan_.matrix("embed_tokens", matrix("model.embed_tokens", c_.vocab_size, c_.hidden_size));
    const Slots s{plan_.slot("x", c_.hidden_size), plan_.slot("qkv", qkv_width()),
                  plan_.slot("attention", c_.heads * c_.head_dim),
                  plan_.slot("gated", c_.intermediate_size)};
    const int group = plan_.kv_group({c_.layers, c_.kv_heads, c_.head_dim});
    const ops::VectorId frequencies = plan_.vector("inv_freq", rotary_frequencies(c_));

    plan_.add(ops::Embed{embedding, s.x});
    for (int layer = 0; layer < c_.layers; ++layer) {
      record_attention(layer, s, {group, layer}, frequencies);
      record_mlp(layer, s);
    }
    const ops::MatrixId head =
        c_.tied_embeddings
            ? embedding
            : plan_.matrix("lm_head", matrix("lm_head", c_.vocab_size, c_.hidden_size));
    plan_.add(ops::LmHead{s.x, norm("model.norm", c_.hidden_size), head});
    return plan_.finish(c_.hidden_size, c_.vocab_size, context_length_);
  }

 private:
  void record_attention(int layer, const Slots& s, ops::KvLayer kv, ops::VectorId frequencies) {
    const std::string at = prefix(layer) + "self_attn.";
    const ops::AttentionShape shape{c_.heads, c_.kv_heads, c_.head_dim};
    record_qkv(layer, s);

    ops::RopeAndCacheWrite rope{s.qkv, shape, c_.head_dim, false, frequencies};
    if (c_.qk_norm) {
      rope.q_norm = norm(at + "q_norm", c_.head_dim);
      rope.k_norm = norm(at + "k_norm", c_.head_dim);
    }
    rope.kv = kv;
    plan_.add(rope);

    ops::PagedAttention attention{s.qkv, s.attention, shape};
    attention.scale = 1.0F / std::sqrt(static_cast<float>(c_.head_dim));
    attention.window = window(layer);
    attention.kv = kv;
    plan_.add(attention);

    const int width = c_.heads * c_.head_dim;
    ops::QuantLinear out{s.attention, {}, weight(at + "o_proj", c_.hidden_size, width)};
    if (c_.output_bias) out.bias = bias({at + "o_proj"}, {c_.hidden_size});
    out.epilogue = Epilogue::kResidual;
    out.out = s.x;
    plan_.add(out);
  }

  // q, k and v as one matrix where their formats allow, else side by side.
  void record_qkv(int layer, const Slots& s) {
    const std::string at = prefix(layer) + "self_attn.";
    const Norm before = norm(prefix(layer) + "input_layernorm", c_.hidden_size);
    const std::vector<std::string> names{at + "q_proj", at + "k_proj", at + "v_proj"};
    const int kv_width = c_.kv_heads * c_.head_dim;
    const std::vector<int> rows{c_.heads * c_.head_dim, kv_width, kv_width};
    std::vector<WeightSourcePtr> parts;
    parts.reserve(names.size());
    for (int i = 0; i < 3; ++i) parts.push_back(matrix(names[i], rows[i], c_.hidden_size));
    if (parts[0]->format() == parts[1]->format() && parts[1]->format() == parts[2]->format()) {
      ops::QuantLinear linear{s.x, before, plan_.matrix(at + "qkv_proj", ops::concat_rows(parts))};
      if (c_.attention_bias) linear.bias = bias(names, rows);
      linear.out = s.qkv;
      plan_.add(linear);
      return;
    }
    int column = 0;
    for (int i = 0; i < 3; ++i) {
      ops::QuantLinear linear{s.x, before, plan_.matrix(names[i], parts[i])};
      if (c_.attention_bias) linear.bias = bias({names[i]}, {rows[i]});
      linear.out = s.qkv;
      linear.out_column = column;
      column += rows[i];
      plan_.add(linear);
    }
  }

  void record_mlp(int layer, const Slots& s) {
    const std::string at = prefix(layer) + "mlp.";
    const int width = c_.intermediate_size;
    const WeightSourcePtr gate = matrix(at + "gate_proj", width, c_.hidden_size);
    const WeightSourcePtr up = matrix(at + "up_proj", width, c_.hidden_size);
    ops::QuantLinear gated{s.x, norm(prefix(layer) + "post_attention_layernorm", c_.hidden_size),
                           plan_.matrix(at + "gate_up_proj", ops::concat_rows({gate, up}))};
    if (c_.mlp_bias) gated.bias = bias({at + "gate_proj", at + "up_proj"}, {width, width});
    gated.epilogue = Epilogue::kSwiGlu;
    gated.out = s.gated;
    plan_.add(gated);

    ops::QuantLinear down{s.gated, {}, weight(at + "down_proj", c_.hidden_size, width)};
    if (c_.mlp_bias) down.bias = bias({at + "down_proj"}, {c_.hidden_size});
    down.epilogue = Epilogue::kResidual;
    down.out = s.x;
    plan_.add(down);
  }

  static std::string prefix(int layer) { return "model.layers." + std::to_string(layer) + "."; }
  int qkv_width() const { return (c_.heads + 2 * c_.kv_heads) * c_.head_dim; }

  int window(int layer) const {
    if (c_.window_layers.empty()) return c_.sliding_window;
    for (int l : c_.window_layers) {
      if (l == layer) return c_.sliding_window;
    }
    return 0;
  }

  WeightSourcePtr matrix(const std::string& name, int rows, int cols) const {
    return file_.matrix(name + ".weight", rows, cols);
  }
  ops::MatrixId weight(const std::string& name, int rows, int cols) {
    return plan_.matrix(name, matrix(name, rows, cols));
  }
  Norm norm(const std::string& name, int size) {
    return {plan_.vector(name, file_.vector(name + ".weight", size)), c_.norm_eps, 0.0F};
  }
  ops::VectorId bias(const std::vector<std::string>& names, const std::vector<int>& sizes) {
    std::vector<float> all;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::vector<float> part = file_.vector(names[i] + ".bias", sizes[i]);
      all.insert(all.end(), part.begin(), part.end());
    }
    return plan_.vector(names.front() + ".bias", std::move(all));
  }

  const Checkpoint& file_;
  const ModelConfig& c_;
  int context_length_;
  ops::PlanBuilder plan_;
};

}  // namespace

ops::Plan record_llama(const Checkpoint& checkpoint, int context_length) {
  return Recorder(checkpoint, context_length).record();
}

}  // namespace bodega::model
