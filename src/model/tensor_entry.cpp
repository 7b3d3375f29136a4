#include "model/tensor_entry.h"

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

}  // namespace bodega::model
