#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tensor_entry.h"

namespace bodega::model {

// The table of contents of a safetensors file: an 8-byte length, that much JSON, then the tensors,
// which must fill the rest of the file without gap, overlap or cut.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their bytes
  std::uint64_t data_begin = 0;

  // Throws Error(kBadModelFile) naming file and tensor. Allocates nothing before the length of the
  // header was compared with the file's.
  static SafetensorsHeader parse(std::span<const std::byte> file, const std::string& file_name);
};

// model.safetensors.index.json: tensor name -> name of the file beside it that holds it. A name
// that leads anywhere else is refused.
std::map<std::string, std::string> parse_safetensors_index(std::string_view text,
                                                           const std::string& file_name);

}  // namespace bodega::model
