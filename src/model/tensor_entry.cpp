#include "model/tensor_entry.h"

#include <algorithm>

namespace bodega::model {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

std::optional<std::uint64_t> count_values(const std::vector<std::int64_t>& shape) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 62;
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size > 0 && count > kLimit / static_cast<std::uint64_t>(size)) return std::nullopt;
    count *= static_cast<std::uint64_t>(size);
  }
  return count;
}

void check_inside(const TensorEntry& tensor, std::uint64_t data_bytes, const std::string& file) {
  const std::uint64_t available = data_bytes - std::min(data_bytes, tensor.begin);
  if (tensor.size <= available) return;
  fail_tensor(file, tensor.name,
              "is cut off: " + std::to_string(tensor.size - available) + " of its " +
                  std::to_string(tensor.size) + " bytes are missing.");
}

void check_offset(const TensorEntry& tensor, std::uint64_t expected, const std::string& file) {
  if (tensor.begin == expected) return;
  fail_tensor(file, tensor.name,
              "lies at offset " + std::to_string(tensor.begin) + " instead of " +
                  std::to_string(expected) + (tensor.begin < expected ? " (overlap)." : " (gap)."));
}

}  // namespace bodega::model
