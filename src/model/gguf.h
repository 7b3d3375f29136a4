#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tensor_entry.h"

namespace bodega::model {

// Types of metadata values; the numbers are the format's (GGUF specification, ggml/docs/gguf.md).
enum class GgufType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// A value as it lies in the file. Strings of an array are still length-prefixed.
struct GgufValue {
  GgufType type = GgufType::kUint8;
  GgufType element = GgufType::kUint8;  // of an array
  std::uint64_t count = 1;
  std::span<const std::byte> bytes;
};

// The header of a GGUF file, version 2 or 3, little-endian. Values and strings point into the bytes
// it was parsed from. The getters return nothing for an absent key and throw Error(kBadModelFile),
// with file and key, for one of another type.
class GgufHeader {
 public:
  // Checks everything that can be checked without the architecture: counts, lengths, types, UTF-8,
  // duplicates, alignment, and that the tensors fill the file without gap, overlap or cut.
  static GgufHeader parse(std::span<const std::byte> file, const std::string& file_name);

  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  std::uint64_t data_begin() const { return data_begin_; }
  bool has(const std::string& key) const { return values_.contains(key); }

  std::optional<std::int64_t> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;  // floats and integers
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> string(const std::string& key) const;
  std::optional<std::vector<std::string>> strings(const std::string& key) const;
  // One integer counts as a list of one.
  std::optional<std::vector<std::int64_t>> integers(const std::string& key) const;
  std::optional<std::vector<float>> floats(const std::string& key) const;

 private:
  const GgufValue* find(const std::string& key) const;
  [[noreturn]] void wrong_type(const std::string& key, const char* wanted) const;

  std::string file_name_;
  std::map<std::string, GgufValue, std::less<>> values_;
  std::vector<TensorEntry> tensors_;
  std::uint64_t data_begin_ = 0;
};

}  // namespace bodega::model
