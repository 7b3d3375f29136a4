#include "model/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "model/config_json.h"

namespace bodega::model {
namespace {

namespace json = boost::json;

static_assert(std::endian::native == std::endian::little, "weight files are little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the format's own limit

constexpr std::array<std::pair<std::string_view, int>, 15> kTypes = {{
    {"F64", 8},
    {"F32", 4},
    {"F16", 2},
    {"BF16", 2},
    {"I64", 8},
    {"I32", 4},
    {"I16", 2},
    {"I8", 1},
    {"U64", 8},
    {"U32", 4},
    {"U16", 2},
    {"U8", 1},
    {"BOOL", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
}};

std::string_view header_text(std::span<const std::byte> file, const std::string& name) {
  std::uint64_t length = 0;
  if (file.size() < kLengthBytes) fail_file(name, "is too short for a safetensors file.");
  std::memcpy(&length, file.data(), kLengthBytes);
  const std::uint64_t left = file.size() - kLengthBytes;
  if (length > left || length > kMaxHeader) {
    fail_file(name, "says that its header has " + std::to_string(length) + " bytes, but " +
                        (length > left ? std::to_string(left) + " are left."
                                       : std::to_string(kMaxHeader) + " is the format's limit."));
  }
  return {reinterpret_cast<const char*>(file.data()) + kLengthBytes,
          static_cast<std::size_t>(length)};
}

// A list of integers from 0 on; nothing for anything else.
std::optional<std::vector<std::int64_t>> sizes(const json::value* value) {
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<std::int64_t> result;
  for (const json::value& item : value->get_array()) {
    const auto* number = item.if_int64();
    if (number == nullptr || *number < 0) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

int value_bytes(const TensorEntry& tensor, const std::string& file) {
  for (const auto& [name, bytes] : kTypes) {
    if (tensor.type == name) return bytes;
  }
  fail_tensor(file, tensor.name, "has the unknown type '" + printable(tensor.type) + "'.");
}

TensorEntry read_tensor(std::string_view name, const json::value& value, const std::string& file) {
  TensorEntry tensor;
  tensor.name = name;
  const auto* object = value.if_object();
  const json::value* type = object == nullptr ? nullptr : object->if_contains("dtype");
  const auto shape = sizes(object == nullptr ? nullptr : object->if_contains("shape"));
  const auto offsets = sizes(object == nullptr ? nullptr : object->if_contains("data_offsets"));
  const bool complete = type != nullptr && type->is_string() && shape && offsets;
  if (!complete || object->size() != 3 || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    fail_tensor(file, name, "needs exactly a dtype, a shape and two ascending data_offsets.");
  }
  tensor.type = type->get_string();
  tensor.shape = *shape;
  tensor.begin = (*offsets)[0];
  tensor.size = (*offsets)[1] - (*offsets)[0];
  const std::uint64_t width = value_bytes(tensor, file);
  const auto values = count_values(tensor.shape);
  if (!values || *values > (std::uint64_t{1} << 58) || *values * width != tensor.size) {
    fail_tensor(file, name,
                "has " + std::to_string(tensor.size) + " bytes, which is not what " + tensor.type +
                    " of the shape " + shape_text(tensor.shape) + " takes.");
  }
  return tensor;
}

// MLX writes null where it has nothing to say.
void check_metadata(const json::value& value, const std::string& file) {
  if (value.is_null()) return;
  const auto* object = value.if_object();
  const bool texts = object != nullptr && std::ranges::all_of(*object, [](const auto& entry) {
                       return entry.value().is_string();
                     });
  if (!texts) fail_file(file, "'__metadata__' is not an object of strings.");
}

void place_tensors(SafetensorsHeader& header, std::uint64_t file_bytes, const std::string& file) {
  const std::uint64_t data_bytes = file_bytes - header.data_begin;
  std::ranges::sort(header.tensors, {},
                    [](const TensorEntry& tensor) { return std::pair(tensor.begin, tensor.size); });
  std::uint64_t expected = 0;
  for (TensorEntry& tensor : header.tensors) {
    check_offset(tensor, expected, file);
    check_inside(tensor, data_bytes, file);
    expected += tensor.size;
    tensor.begin += header.data_begin;
  }
  if (expected != data_bytes) {
    fail_file(file, std::to_string(data_bytes - expected) + " bytes follow the last tensor.");
  }
}

// A plain file name of the same folder.
bool is_plain_name(std::string_view name) {
  return name.size() > 12 && name.ends_with(".safetensors") && name[0] != '.' &&
         name.find_first_of("/\\") == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace

SafetensorsHeader SafetensorsHeader::parse(std::span<const std::byte> file,
                                           const std::string& file_name) {
  const std::string_view text = header_text(file, file_name);
  const json::value document = parse_json(text, file_name + " (header)");
  const JsonFields fields(document, file_name + " (header)");
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + text.size();
  for (const auto& [name, value] : fields.json()) {
    if (name == "__metadata__") {
      check_metadata(value, file_name);
    } else {
      header.tensors.push_back(read_tensor(name, value, file_name));
    }
  }
  place_tensors(header, file.size(), file_name);
  return header;
}

std::map<std::string, std::string> parse_safetensors_index(std::string_view text,
                                                           const std::string& file_name) {
  const json::value document = parse_json(text, file_name);
  const auto files = JsonFields(document, file_name).object("weight_map");
  if (!files || files->json().empty()) fail_file(file_name, "has no 'weight_map'.");
  std::map<std::string, std::string> result;
  for (const auto& [tensor, file] : files->json()) {
    const auto* name = file.if_string();
    if (name == nullptr || !is_plain_name(*name)) {
      fail_tensor(file_name, tensor, "is not mapped to a safetensors file of this folder.");
    }
    result.emplace(tensor, *name);
  }
  return result;
}

}  // namespace bodega::model
