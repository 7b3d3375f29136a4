#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint_hash.h"
#include "model/checkpoint_sources.h"
#include "model/mapped_file.h"
#include "model/safetensors.h"
#include "ops/weight_source.h"

namespace bodega::model {

// The safetensors files of a Hugging Face folder as one table of tensors, under text_model_name().
class FolderTensors {
 public:
  struct Tensor {
    std::shared_ptr<const MappedFile> file;
    TensorEntry entry;
  };

  // Reads model.safetensors.index.json where there is one, else model*.safetensors.
  explicit FolderTensors(const std::filesystem::path& folder);

  const Tensor* find(const std::string& name) const;
  std::vector<std::string> names() const;  // without .scales and .biases of a quantized weight
  std::uint64_t bytes() const;
  void add_to(ContentHash& hash) const;

  // Each throws Error(kBadModelFile) where a tensor is missing, or has another type or shape.
  ops::WeightSourcePtr dense(const std::string& name, int rows, int cols) const;
  std::vector<float> vector(const std::string& name, int size) const;
  // The triple <module>.weight, .scales, .biases. Bits and group size are worked out from the
  // shapes and must be what `declared` says.
  ops::WeightSourcePtr quantized(const std::string& module,
                                 const std::optional<ops::WeightFormat>& declared, int rows,
                                 int cols) const;

 private:
  struct Shard {
    std::shared_ptr<const MappedFile> file;
    SafetensorsHeader header;
  };

  void add_shard(const std::filesystem::path& folder, const std::string& name);
  void check_index(const std::map<std::string, std::string>& index) const;
  const Tensor& require(const std::string& name) const;

  std::vector<Shard> shards_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace bodega::model
