#pragma once

#include <string>

#include "core/gguf_vocabulary.h"
#include "model/config.h"
#include "model/gguf.h"

namespace bodega::model {

// A llama-family configuration from GGUF metadata and the names of its tensors. Rotary factors
// (rope_freqs.weight) are filled in by the caller, who has the bytes. Throws Error(kBadModelFile)
// for another architecture, a missing key, and every feature that we would compute wrongly.
ModelConfig config_from_gguf(const GgufHeader& header, const std::string& file);

// tokenizer.ggml.*, with sizes and ids checked against each other.
core::GgufVocabulary vocabulary_from_gguf(const GgufHeader& header, const std::string& file);

}  // namespace bodega::model
