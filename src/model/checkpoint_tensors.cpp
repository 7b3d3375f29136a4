#include "model/checkpoint_tensors.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "model/checkpoint_floats.h"
#include "model/checkpoint_formats.h"
#include "model/names.h"

namespace bodega::model {
namespace {

namespace fs = std::filesystem;
using ops::WeightFormat;
using Kind = WeightFormat::Kind;

constexpr const char* kIndex = "model.safetensors.index.json";

std::optional<ops::FloatType> float_type(const std::string& type) {
  if (type == "F32") return ops::FloatType::kF32;
  if (type == "F16") return ops::FloatType::kF16;
  if (type == "BF16") return ops::FloatType::kBF16;
  return std::nullopt;
}

std::vector<std::string> weight_files(const fs::path& folder) {
  std::vector<std::string> result;
  for (const std::string& name : list_folder(folder)) {
    if (name.starts_with("model") && name.ends_with(".safetensors")) result.push_back(name);
  }
  if (result.empty()) {
    fail_file(printable(folder.string()), "the folder has no model*.safetensors.");
  }
  return result;
}

void check_shape(const FolderTensors::Tensor& tensor, const std::vector<std::int64_t>& shape) {
  if (tensor.entry.shape == shape) return;
  fail_tensor(
      tensor.file->name(), tensor.entry.name,
      "has the shape " + shape_text(tensor.entry.shape) + " instead of " + shape_text(shape) + ".");
}

TensorBytes bytes_of(const FolderTensors::Tensor& tensor) {
  tensor.file->check_unchanged();
  return {tensor.file, tensor.file->bytes().subspan(tensor.entry.begin, tensor.entry.size)};
}

ops::FloatType require_float(const FolderTensors::Tensor& tensor) {
  const auto type = float_type(tensor.entry.type);
  if (!type) {
    fail_tensor(tensor.file->name(), tensor.entry.name,
                "has the type " + tensor.entry.type + "; F32, F16 and BF16 are supported here.");
  }
  return *type;
}

// The format that two shapes imply: `words` 32-bit words and `groups` scales for `cols` values.
std::optional<WeightFormat> format_from_shapes(const FolderTensors::Tensor& scales, bool biases,
                                               std::int64_t words, std::int64_t groups,
                                               std::int64_t cols) {
  if (words <= 0 || groups <= 0 || cols % groups != 0 || words * 32 % cols != 0)
    return std::nullopt;
  WeightFormat format{.bits = static_cast<int>(std::min<std::int64_t>(words * 32 / cols, 32)),
                      .group_size = static_cast<int>(cols / groups)};
  if (biases) {
    const auto type = float_type(scales.entry.type);
    if (!type) return std::nullopt;
    format.kind = Kind::kAffine;
    format.type = *type;
    constexpr std::array kBits = {2, 3, 4, 5, 6, 8};
    constexpr std::array kGroups = {32, 64, 128};
    const bool known = std::ranges::count(kBits, format.bits) > 0 &&
                       std::ranges::count(kGroups, format.group_size) > 0;
    return known ? std::optional(format) : std::nullopt;
  }
  if (scales.entry.type != "U8") return std::nullopt;
  const std::pair shape(format.bits, format.group_size);
  if (shape == std::pair(4, 32)) format.kind = Kind::kMxfp4;
  if (shape == std::pair(8, 32)) format.kind = Kind::kMxfp8;
  if (shape == std::pair(4, 16)) format.kind = Kind::kNvfp4;
  return format.quantized() ? std::optional(format) : std::nullopt;
}

void check_declared(const FolderTensors::Tensor& weight, const WeightFormat& found,
                    const std::optional<WeightFormat>& declared) {
  const std::string what = "is " + found.name() + " by its shape, but config.json says ";
  if (!declared) {
    fail_tensor(weight.file->name(), weight.entry.name, what + "that it is not quantized.");
  }
  if (declared->kind != found.kind || declared->bits != found.bits ||
      declared->group_size != found.group_size) {
    fail_tensor(weight.file->name(), weight.entry.name, what + declared->name() + ".");
  }
}

}  // namespace

FolderTensors::FolderTensors(const fs::path& folder) {
  std::map<std::string, std::string> index;
  if (const auto file = open_in_folder(folder, kIndex)) {
    const auto* text = reinterpret_cast<const char*>(file->bytes().data());
    index = parse_safetensors_index({text, file->bytes().size()}, kIndex);
    std::set<std::string> names;
    for (const auto& [tensor, name] : index) names.insert(name);
    for (const std::string& name : names) add_shard(folder, name);
    check_index(index);
    return;
  }
  for (const std::string& name : weight_files(folder)) add_shard(folder, name);
}

void FolderTensors::add_shard(const fs::path& folder, const std::string& name) {
  auto file = open_in_folder(folder, name);
  if (file == nullptr) fail_file(name, "is missing.");
  auto header = SafetensorsHeader::parse(file->bytes(), file->name());
  for (const TensorEntry& entry : header.tensors) {
    if (!tensors_.try_emplace(text_model_name(entry.name), Tensor{file, entry}).second) {
      fail_tensor(file->name(), entry.name, "appears twice.");
    }
  }
  file->release(file->bytes());
  shards_.push_back({std::move(file), std::move(header)});
}

void FolderTensors::check_index(const std::map<std::string, std::string>& index) const {
  std::set<std::pair<std::string, std::string>> listed;  // (file, tensor)
  for (const auto& [tensor, file] : index) listed.emplace(printable(file), tensor);
  for (const Shard& shard : shards_) {
    for (const TensorEntry& entry : shard.header.tensors) {
      if (listed.erase({shard.file->name(), entry.name}) == 0) {
        fail_tensor(shard.file->name(), entry.name,
                    std::string("is not listed in ") + kIndex + ".");
      }
    }
  }
  if (!listed.empty()) {
    const auto& [file, tensor] = *listed.begin();
    fail_tensor(file, tensor, std::string("is missing, though ") + kIndex + " lists it.");
  }
}

const FolderTensors::Tensor* FolderTensors::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

const FolderTensors::Tensor& FolderTensors::require(const std::string& name) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr) fail_tensor("the folder", name, "is missing.");
  return *tensor;
}

std::vector<std::string> FolderTensors::names() const {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : tensors_) {
    const std::string module = name.substr(0, name.rfind('.'));
    const bool quantized =
        tensors_.contains(module + ".weight") && tensors_.contains(module + ".scales");
    if (quantized && (name.ends_with(".scales") || name.ends_with(".biases"))) continue;
    result.push_back(name);
  }
  return result;
}

std::uint64_t FolderTensors::bytes() const {
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += tensor.entry.size;
  return total;
}

void FolderTensors::add_to(ContentHash& hash) const {
  for (const Shard& shard : shards_) {
    hash.add(*shard.file, shard.header.data_begin, shard.header.tensors);
  }
}

ops::WeightSourcePtr FolderTensors::dense(const std::string& name, int rows, int cols) const {
  const Tensor& tensor = require(name);
  const ops::FloatType type = require_float(tensor);
  check_shape(tensor, {rows, cols});
  return dense_source(bytes_of(tensor), type, rows, cols);
}

std::vector<float> FolderTensors::vector(const std::string& name, int size) const {
  const Tensor& tensor = require(name);
  const ops::FloatType type = require_float(tensor);
  check_shape(tensor, {size});
  const TensorBytes bytes = bytes_of(tensor);
  const MappedRange range(bytes.file, bytes.bytes);
  std::vector<float> values(size);
  widen(type, range.data(), values.size(), values.data());
  return values;
}

ops::WeightSourcePtr FolderTensors::quantized(const std::string& module,
                                              const std::optional<WeightFormat>& declared, int rows,
                                              int cols) const {
  const Tensor& weight = require(module + ".weight");
  const Tensor& scales = require(module + ".scales");
  const Tensor* biases = find(module + ".biases");
  const auto& packed = weight.entry.shape;
  const auto& grouped = scales.entry.shape;
  const bool matrices = packed.size() == 2 && grouped.size() == 2;
  const auto format =
      matrices && weight.entry.type == "U32"
          ? format_from_shapes(scales, biases != nullptr, packed[1], grouped[1], cols)
          : std::nullopt;
  if (!format || packed[0] != rows || grouped[0] != rows) {
    fail_tensor(weight.file->name(), weight.entry.name,
                "(" + weight.entry.type + " " + shape_text(packed) + ", scales " +
                    scales.entry.type + " " + shape_text(grouped) + ") is no quantized form of " +
                    shape_text({rows, cols}) + ".");
  }
  if (biases != nullptr) {
    check_shape(*biases, grouped);
    if (biases->entry.type != scales.entry.type) {
      fail_tensor(biases->file->name(), biases->entry.name, "has another type than its scales.");
    }
  }
  check_declared(weight, *format, declared);
  MlxTensors tensors{bytes_of(weight), bytes_of(scales), std::nullopt};
  if (biases != nullptr) tensors.biases = bytes_of(*biases);
  return mlx_source(tensors, *format, rows, cols);
}

}  // namespace bodega::model
