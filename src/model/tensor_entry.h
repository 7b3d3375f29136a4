#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "model/names.h"

namespace bodega::model {

// One line of a weight file's table of contents, already checked against the file's size.
struct TensorEntry {
  std::string name;
  std::string type;                 // as the format spells it: "F16", "Q4_1"
  std::vector<std::int64_t> shape;  // outermost first: [rows, cols]
  std::uint64_t begin = 0;          // bytes from the start of the file
  std::uint64_t size = 0;           // bytes
};

[[noreturn]] inline void fail_file(const std::string& file, const std::string& why) {
  throw Error(ErrorKind::kBadModelFile, file + ": " + why);
}

[[noreturn]] inline void fail_tensor(const std::string& file, std::string_view tensor,
                                     const std::string& why) {
  fail_file(file, "tensor '" + printable(tensor) + "' " + why);
}

// "[576, 1536]"
std::string shape_text(const std::vector<std::int64_t>& shape);

// Product of the sizes; nothing when one is negative or a partial product passes 2^62.
std::optional<std::uint64_t> count_values(const std::vector<std::int64_t>& shape);

// Both take `begin` as an offset into the file's data and throw, naming file and tensor: where the
// tensor does not lie within `data_bytes`, and where it does not begin at `expected`.
void check_inside(const TensorEntry& tensor, std::uint64_t data_bytes, const std::string& file);
void check_offset(const TensorEntry& tensor, std::uint64_t expected, const std::string& file);

}  // namespace bodega::model
