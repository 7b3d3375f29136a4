#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "model/gguf.h"

namespace bodega::model {
namespace {

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// An integer of any width; nothing for other types and for values above 2^63.
std::optional<std::int64_t> integer_at(GgufType type, const std::byte* bytes) {
  switch (type) {
    case GgufType::kUint8:
      return load<std::uint8_t>(bytes);
    case GgufType::kInt8:
      return load<std::int8_t>(bytes);
    case GgufType::kUint16:
      return load<std::uint16_t>(bytes);
    case GgufType::kInt16:
      return load<std::int16_t>(bytes);
    case GgufType::kUint32:
      return load<std::uint32_t>(bytes);
    case GgufType::kInt32:
      return load<std::int32_t>(bytes);
    case GgufType::kInt64:
      return load<std::int64_t>(bytes);
    case GgufType::kUint64: {
      const auto value = load<std::uint64_t>(bytes);
      if (value > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::uint64_t integer_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

const GgufValue* GgufHeader::find(const std::string& key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

void GgufHeader::wrong_type(const std::string& key, const char* wanted) const {
  fail_file(file_name_, "metadata '" + printable(key) + "' is not " + wanted + ".");
}

std::optional<std::int64_t> GgufHeader::integer(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto result = integer_at(value->type, value->bytes.data());
  if (!result) wrong_type(key, "an integer");
  return result;
}

std::optional<double> GgufHeader::number(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  double result = 0.0;
  if (value->type == GgufType::kFloat32) {
    result = load<float>(value->bytes.data());
  } else if (value->type == GgufType::kFloat64) {
    result = load<double>(value->bytes.data());
  } else {
    result = static_cast<double>(*integer(key));
  }
  if (!std::isfinite(result)) wrong_type(key, "a finite number");
  return result;
}

std::optional<bool> GgufHeader::boolean(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kBool) wrong_type(key, "a bool");
  return value->bytes[0] != std::byte{0};
}

std::optional<std::string> GgufHeader::string(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) wrong_type(key, "a string");
  return std::string(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

std::optional<std::vector<std::string>> GgufHeader::strings(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kArray || value->element != GgufType::kString) {
    wrong_type(key, "a list of strings");
  }
  std::vector<std::string> result;
  result.reserve(value->count);
  const std::byte* at = value->bytes.data();  // lengths were checked when the header was parsed
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto length = load<std::uint64_t>(at);
    result.emplace_back(reinterpret_cast<const char*>(at + 8), length);
    at += 8 + length;
  }
  return result;
}

std::optional<std::vector<std::int64_t>> GgufHeader::integers(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kArray) return std::vector{*integer(key)};
  const std::uint64_t width = integer_bytes(value->element);
  if (width == 0) wrong_type(key, "a list of integers");
  std::vector<std::int64_t> result;
  result.reserve(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto number = integer_at(value->element, value->bytes.data() + i * width);
    if (!number) wrong_type(key, "a list of 64-bit integers");
    result.push_back(*number);
  }
  return result;
}

std::optional<std::vector<float>> GgufHeader::floats(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kArray || value->element != GgufType::kFloat32) {
    wrong_type(key, "a list of floats");
  }
  std::vector<float> result(value->count);
  if (!result.empty()) std::memcpy(result.data(), value->bytes.data(), value->bytes.size());
  return result;
}

}  // namespace bodega::model
