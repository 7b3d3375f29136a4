#include "model/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "base/utf8.h"

namespace bodega::model {
namespace {

static_assert(std::endian::native == std::endian::little, "weight files are little-endian");

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 1 << 20;
constexpr std::uint64_t kMaxKeyLength = 65535;  // GGUF specification
constexpr std::uint64_t kMaxTensorName = 256;   // the specification says 64
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::uint64_t kSmallestValue = 8 + 1 + 4 + 1;  // key length, key, type, one byte
constexpr std::uint64_t kSmallestTensor = 8 + 1 + 4 + 8 + 4 + 8;

struct BlockType {
  std::uint32_t id;
  const char* name;
  std::uint32_t values;  // per block; 0 = a type we know by name only
  std::uint32_t bytes;
};

// ggml's tensor types; those without a size are refused by name.
constexpr std::array<BlockType, 36> kTypes = {{
    {0, "F32", 1, 4},      {1, "F16", 1, 2},     {2, "Q4_0", 32, 18},    {3, "Q4_1", 32, 20},
    {6, "Q5_0", 0, 0},     {7, "Q5_1", 0, 0},    {8, "Q8_0", 32, 34},    {9, "Q8_1", 0, 0},
    {10, "Q2_K", 0, 0},    {11, "Q3_K", 0, 0},   {12, "Q4_K", 0, 0},     {13, "Q5_K", 0, 0},
    {14, "Q6_K", 0, 0},    {15, "Q8_K", 0, 0},   {16, "IQ2_XXS", 0, 0},  {17, "IQ2_XS", 0, 0},
    {18, "IQ3_XXS", 0, 0}, {19, "IQ1_S", 0, 0},  {20, "IQ4_NL", 0, 0},   {21, "IQ3_S", 0, 0},
    {22, "IQ2_S", 0, 0},   {23, "IQ4_XS", 0, 0}, {24, "I8", 0, 0},       {25, "I16", 0, 0},
    {26, "I32", 0, 0},     {27, "I64", 0, 0},    {28, "F64", 0, 0},      {29, "IQ1_M", 0, 0},
    {30, "BF16", 1, 2},    {34, "TQ1_0", 0, 0},  {35, "TQ2_0", 0, 0},    {39, "MXFP4", 0, 0},
    {4, "Q4_2", 0, 0},     {5, "Q4_3", 0, 0},    {31, "Q4_0_4_4", 0, 0}, {40, "NVFP4", 0, 0},
}};

const BlockType* find_type(std::uint32_t id) {
  for (const BlockType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

// Bytes of a fixed-size value; 0 for strings, arrays and unknown types.
std::uint64_t scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

// Reads forward and never past the end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return bytes_.size() - position_; }

  std::span<const std::byte> take(std::uint64_t count, const std::string& what) {
    if (count > left()) {
      fail_file(file_, "ends inside its header: " + what + " needs " + std::to_string(count) +
                           " bytes, " + std::to_string(left()) + " are left.");
    }
    const auto result = bytes_.subspan(position_, count);
    position_ += count;
    return result;
  }

  template <typename T>
  T number(const std::string& what) {
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string_view text(const std::string& what) {
    const auto length = number<std::uint64_t>("the length of " + what);
    const auto bytes = take(length, what);
    const std::string_view result(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!is_valid_utf8(result)) fail_file(file_, what + " is not valid UTF-8.");
    return result;
  }

  const std::string& file() const { return file_; }

 private:
  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::uint64_t position_ = 0;
};

GgufType read_type(Cursor& in, const std::string& what) {
  const auto type = in.number<std::uint32_t>("the type of " + what);
  if (type > static_cast<std::uint32_t>(GgufType::kFloat64)) {
    fail_file(in.file(), what + " has the unknown type " + std::to_string(type) + ".");
  }
  return static_cast<GgufType>(type);
}

void skip_strings(Cursor& in, std::uint64_t count, const std::string& what) {
  if (count > in.left() / 8) fail_file(in.file(), what + " has more strings than bytes are left.");
  for (std::uint64_t i = 0; i < count; ++i) in.text(what);
}

GgufValue read_array(Cursor& in, std::span<const std::byte> file, const std::string& what) {
  GgufValue value{.type = GgufType::kArray, .bytes = {}};
  value.element = read_type(in, what);
  value.count = in.number<std::uint64_t>("the length of " + what);
  if (value.element == GgufType::kArray) fail_file(in.file(), what + " is an array of arrays.");
  const std::uint64_t begin = in.position();
  if (value.element == GgufType::kString) {
    skip_strings(in, value.count, what);
  } else {
    const std::uint64_t size = scalar_bytes(value.element);
    if (value.count > in.left() / size) {
      fail_file(in.file(), what + " has more values than bytes are left.");
    }
    in.take(value.count * size, what);
  }
  value.bytes = file.subspan(begin, in.position() - begin);
  return value;
}

GgufValue read_value(Cursor& in, std::span<const std::byte> file, const std::string& key) {
  const std::string what = "metadata '" + printable(key) + "'";
  GgufValue value{.type = read_type(in, what), .bytes = {}};
  if (value.type == GgufType::kArray) return read_array(in, file, what);
  if (value.type == GgufType::kString) {
    const std::string_view text = in.text(what);
    value.bytes = std::as_bytes(std::span(text.data(), text.size()));
    return value;
  }
  value.bytes = in.take(scalar_bytes(value.type), what);
  if (value.type == GgufType::kBool && static_cast<unsigned>(value.bytes[0]) > 1) {
    fail_file(in.file(), what + " is a bool that is neither 0 nor 1.");
  }
  return value;
}

void read_shape(Cursor& in, TensorEntry& tensor) {
  const std::string what = "tensor '" + printable(tensor.name) + "'";
  const auto dimensions = in.number<std::uint32_t>(what);
  if (dimensions < 1 || dimensions > kMaxDimensions) {
    fail_tensor(in.file(), tensor.name, "has " + std::to_string(dimensions) + " dimensions.");
  }
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto size = in.number<std::uint64_t>(what);
    if (size < 1 || size > (std::uint64_t{1} << 40)) {
      fail_tensor(in.file(), tensor.name, "has a dimension of " + std::to_string(size) + ".");
    }
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
  }
}

std::uint64_t tensor_bytes(const TensorEntry& tensor, const BlockType& type,
                           const std::string& file) {
  const auto values = count_values(tensor.shape);
  if (!values) fail_tensor(file, tensor.name, "has an impossible size " + shape_text(tensor.shape));
  if (tensor.shape.back() % type.values != 0) {
    fail_tensor(file, tensor.name,
                std::string("is ") + type.name + " but its rows of " +
                    std::to_string(tensor.shape.back()) + " values are no multiple of " +
                    std::to_string(type.values) + ".");
  }
  return *values / type.values * type.bytes;
}

TensorEntry read_tensor(Cursor& in) {
  TensorEntry tensor;
  tensor.name = in.text("a tensor's name");
  if (tensor.name.empty() || tensor.name.size() > kMaxTensorName) {
    fail_tensor(in.file(), tensor.name, "has a name of impossible length.");
  }
  read_shape(in, tensor);
  const std::string what = "tensor '" + printable(tensor.name) + "'";
  const auto id = in.number<std::uint32_t>(what);
  const BlockType* type = find_type(id);
  if (type == nullptr || type->values == 0) {
    fail_tensor(in.file(), tensor.name,
                "has the type " + (type == nullptr ? std::to_string(id) : std::string(type->name)) +
                    ", which is not supported (F32, F16, BF16, Q4_0, Q4_1 and Q8_0 are).");
  }
  tensor.type = type->name;
  tensor.begin = in.number<std::uint64_t>(what);  // from the data's start until placed
  tensor.size = tensor_bytes(tensor, *type, in.file());
  return tensor;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Offsets must be those of tensors laid one after the other, each rounded up to the alignment:
// this refuses overlaps, gaps and bad alignment at once, as llama.cpp does.
void place_tensors(std::vector<TensorEntry>& tensors, std::uint64_t data_begin,
                   std::uint64_t alignment, std::uint64_t file_bytes, const std::string& file) {
  const std::uint64_t data_bytes = file_bytes - std::min(file_bytes, data_begin);
  std::vector<TensorEntry*> order;
  for (TensorEntry& tensor : tensors) {
    check_inside(tensor, data_bytes, file);
    order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, &TensorEntry::begin);
  std::uint64_t expected = 0;
  for (TensorEntry* tensor : order) {
    check_offset(*tensor, expected, file);
    expected = round_up(expected + tensor->size, alignment);
    tensor->begin += data_begin;
  }
  if (data_bytes > expected) {
    fail_file(file, std::to_string(data_bytes - expected) + " bytes follow the last tensor.");
  }
}

std::uint64_t read_alignment(const GgufHeader& header, const std::string& file) {
  const auto value = header.integer("general.alignment");
  if (!value) return kDefaultAlignment;
  const auto alignment = static_cast<std::uint64_t>(*value);
  if (*value < 8 || alignment > kMaxAlignment || !std::has_single_bit(alignment)) {
    fail_file(file,
              "general.alignment is " + std::to_string(*value) + ", not a power of two from 8 on.");
  }
  return alignment;
}

void check_preamble(Cursor& in) {
  constexpr std::string_view kMagic = "GGUF";
  const auto magic = in.take(4, "the magic number");
  if (std::memcmp(magic.data(), kMagic.data(), 4) != 0) {
    fail_file(in.file(), "is not a GGUF file (its first bytes are not 'GGUF').");
  }
  const auto version = in.number<std::uint32_t>("the version");
  if (version != 0 && (version & 0xFFFF) == 0) fail_file(in.file(), "is big-endian GGUF.");
  if (version != 2 && version != 3) {
    fail_file(in.file(),
              "has GGUF version " + std::to_string(version) + "; 2 and 3 are supported.");
  }
}

}  // namespace

GgufHeader GgufHeader::parse(std::span<const std::byte> file, const std::string& file_name) {
  GgufHeader header;
  header.file_name_ = file_name;
  Cursor in(file, header.file_name_);
  check_preamble(in);
  const auto tensors = in.number<std::uint64_t>("the tensor count");
  const auto values = in.number<std::uint64_t>("the metadata count");
  if (values > in.left() / kSmallestValue || tensors > in.left() / kSmallestTensor) {
    fail_file(file_name, "promises more metadata or tensors than it has bytes for.");
  }
  for (std::uint64_t i = 0; i < values; ++i) {
    std::string key(in.text("a metadata key"));
    if (key.empty() || key.size() > kMaxKeyLength) {
      fail_file(file_name, "has a metadata key of impossible length.");
    }
    const GgufValue value = read_value(in, file, key);
    if (!header.values_.emplace(key, value).second) {
      fail_file(file_name, "metadata '" + printable(key) + "' appears twice.");
    }
  }
  std::set<std::string> names;
  for (std::uint64_t i = 0; i < tensors; ++i) {
    header.tensors_.push_back(read_tensor(in));
    const std::string& name = header.tensors_.back().name;
    if (!names.insert(name).second) fail_tensor(file_name, name, "appears twice.");
  }
  const std::uint64_t alignment = read_alignment(header, file_name);
  header.data_begin_ = round_up(in.position(), alignment);
  place_tensors(header.tensors_, header.data_begin_, alignment, file.size(), file_name);
  return header;
}

}  // namespace bodega::model
