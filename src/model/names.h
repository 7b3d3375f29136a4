#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bodega::model {

// Text from a file as it may stand in a message: valid UTF-8, no control characters, at most 100
// bytes.
std::string printable(std::string_view text);

// The Hugging Face name of a llama-family GGUF tensor: "blk.3.attn_q.weight" ->
// "model.layers.3.self_attn.q_proj.weight". Nothing for a name we do not know.
std::optional<std::string> hugging_face_name(std::string_view gguf_name);

// Names as text-only models have them: what a multimodal checkpoint writes as
// "language_model.model.layers..." or "model.language_model.layers..." becomes "model.layers...".
std::string text_model_name(std::string_view name);

// Tensors that some exporters leave behind and that no plan needs: rotary tables, causal masks.
bool is_harmless_leftover(std::string_view name);

}  // namespace bodega::model
