#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/gguf_vocabulary.h"
#include "model/config.h"
#include "ops/weight_source.h"

namespace bodega::model {

// A model on disk: a Hugging Face folder (safetensors) or one GGUF file, under one set of names
// (Hugging Face's: "model.layers.0.self_attn.q_proj.weight"). Headers are checked before a byte of
// them is believed; every error names the file and the tensor. The files are mapped, never copied.
class Checkpoint {
 public:
  static std::unique_ptr<Checkpoint> open(const std::filesystem::path& path);
  virtual ~Checkpoint() = default;

  virtual const ModelConfig& config() const = 0;
  virtual std::vector<std::string> names()
      const = 0;  // of matrices and vectors, without .scales etc.
  virtual bool has(const std::string& name) const = 0;
  // A matrix, with rows in Hugging Face's order (GGUF's permuted q and k are put right).
  virtual ops::WeightSourcePtr matrix(const std::string& name, int rows, int cols) const = 0;
  // A vector (norm weight, bias) in fp32.
  virtual std::vector<float> vector(const std::string& name, int size) const = 0;
  // Fails when a tensor was never asked for (stray) - call after the plan is recorded.
  virtual void check_all_used() const = 0;

  // One of the two: the text of tokenizer.json, or GGUF metadata.
  virtual std::optional<std::string> tokenizer_json() const = 0;
  virtual std::optional<core::GgufVocabulary> gguf_vocabulary() const = 0;

  virtual std::uint64_t bytes() const = 0;       // of all tensors
  virtual std::string content_hash() const = 0;  // hex XXH3-128 of headers and sampled tensor bytes
};

}  // namespace bodega::model
