#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bodega::core {

// What a GGUF file says of its tokenizer, already read and checked by the model folder.
struct GgufVocabulary {
  std::string model;  // tokenizer.ggml.model: "gpt2" (byte-level BPE) or "llama" (SentencePiece)
  std::string pre;    // tokenizer.ggml.pre
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;  // tokenizer.ggml.token_type
  std::vector<float> scores;        // SentencePiece kinds
  std::vector<std::string> merges;  // BPE kinds
  std::int32_t bos = -1;
  std::int32_t eos = -1;
  std::int32_t unknown = -1;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = true;
};

}  // namespace bodega::core
