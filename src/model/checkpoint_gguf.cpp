#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/hash.h"
#include "model/checkpoint_floats.h"
#include "model/checkpoint_formats.h"
#include "model/checkpoint_hash.h"
#include "model/checkpoint_sources.h"
#include "model/config_gguf.h"
#include "model/gguf.h"
#include "model/mapped_file.h"

namespace bodega::model {
namespace {

std::optional<ops::FloatType> float_type(const std::string& type) {
  if (type == "F32") return ops::FloatType::kF32;
  if (type == "F16") return ops::FloatType::kF16;
  if (type == "BF16") return ops::FloatType::kBF16;
  return std::nullopt;
}

// llama.cpp's converter interleaves the two halves of each head of q and k ("llama" only): row
// 2 i + half of a head in the file is row half * head_dim / 2 + i in Hugging Face's order.
std::vector<std::int32_t> file_rows_of_heads(int rows, int head_dim) {
  std::vector<std::int32_t> order(rows);
  const int half = head_dim / 2;
  for (int row = 0; row < rows; ++row) {
    const int in_head = row % head_dim;
    order[row] = row - in_head + 2 * (in_head % half) + in_head / half;
  }
  return order;
}

class GgufCheckpoint : public Checkpoint {
 public:
  explicit GgufCheckpoint(const std::filesystem::path& path)
      : file_(MappedFile::open(path)), header_(GgufHeader::parse(file_->bytes(), file_->name())) {
    config_ = config_from_gguf(header_, file_->name());
    for (const TensorEntry& tensor : header_.tensors()) {
      const auto name = hugging_face_name(tensor.name);
      if (!name) fail_tensor(file_->name(), tensor.name, "is none that a llama-family model has.");
      tensors_.emplace(*name, &tensor);  // distinct names stay distinct
    }
    read_rotary_factors();
    file_->release(file_->bytes());
  }

  const ModelConfig& config() const override { return config_; }

  std::vector<std::string> names() const override {
    std::vector<std::string> result;
    result.reserve(tensors_.size());
    for (const auto& [name, tensor] : tensors_) result.push_back(name);
    return result;
  }

  bool has(const std::string& name) const override { return tensors_.contains(name); }

  ops::WeightSourcePtr matrix(const std::string& name, int rows, int cols) const override {
    const TensorEntry& tensor = checked(name, {rows, cols});
    const auto type = float_type(tensor.type);
    ops::WeightSourcePtr source = type ? dense_source(bytes_of(tensor), *type, rows, cols)
                                       : gguf_source(bytes_of(tensor), tensor.type, rows, cols);
    if (!is_interleaved(name, rows)) return source;
    return ops::reorder_rows(std::move(source), file_rows_of_heads(rows, config_.head_dim));
  }

  std::vector<float> vector(const std::string& name, int size) const override {
    const TensorEntry& tensor = checked(name, {size});
    const auto type = float_type(tensor.type);
    if (!type) {
      fail_tensor(file_->name(), tensor.name, "is a vector of type " + tensor.type + ".");
    }
    const MappedRange range(file_, bytes_of(tensor).bytes);
    std::vector<float> values(size);
    widen(*type, range.data(), values.size(), values.data());
    if (!is_interleaved(name, size)) return values;
    const std::vector<std::int32_t> rows = file_rows_of_heads(size, config_.head_dim);
    std::vector<float> ordered(size);
    std::ranges::transform(rows, ordered.begin(), [&](int row) { return values[row]; });
    return ordered;
  }

  void check_all_used() const override { fail_on_stray(*this, used_, file_->name()); }

  std::optional<std::string> tokenizer_json() const override {
    return header_.string("tokenizer.huggingface.json");
  }

  std::optional<core::GgufVocabulary> gguf_vocabulary() const override {
    return vocabulary_from_gguf(header_, file_->name());
  }

  std::uint64_t bytes() const override {
    std::uint64_t total = 0;
    for (const TensorEntry& tensor : header_.tensors()) total += tensor.size;
    return total;
  }

  std::string content_hash() const override {
    ContentHash hash;
    hash.add(*file_, header_.data_begin(), header_.tensors());
    return hash.finish();
  }

 private:
  const TensorEntry& checked(const std::string& name,
                             const std::vector<std::int64_t>& shape) const {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) fail_tensor(file_->name(), name, "is missing.");
    const TensorEntry& tensor = *it->second;
    if (tensor.shape != shape) {
      fail_tensor(
          file_->name(), tensor.name,
          "has the shape " + shape_text(tensor.shape) + " instead of " + shape_text(shape) + ".");
    }
    file_->check_unchanged();
    used_.add(name);
    return tensor;
  }

  TensorBytes bytes_of(const TensorEntry& tensor) const {
    return {file_, file_->bytes().subspan(tensor.begin, tensor.size)};
  }

  bool is_interleaved(const std::string& name, int rows) const {
    const bool rotated = name.find(".self_attn.q_proj.") != std::string::npos ||
                         name.find(".self_attn.k_proj.") != std::string::npos;
    return rotated && config_.architecture == "llama" && rows % config_.head_dim == 0;
  }

  void read_rotary_factors() {
    if (!has("rope_freqs.weight")) return;
    if (config_.rope_scaling.kind != RopeScaling::Kind::kNone) {
      fail_tensor(file_->name(), "rope_freqs.weight",
                  "contradicts the rope scaling in the metadata.");
    }
    config_.rope_scaling.factors = vector("rope_freqs.weight", config_.head_dim / 2);
    config_.rope_scaling.kind = RopeScaling::Kind::kFactors;
    check_config(config_, file_->name());
  }

  std::shared_ptr<const MappedFile> file_;
  GgufHeader header_;
  ModelConfig config_;
  std::map<std::string, const TensorEntry*> tensors_;
  mutable UsedNames used_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path) {
  return std::make_unique<GgufCheckpoint>(path);
}

}  // namespace bodega::model
