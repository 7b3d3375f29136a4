#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/errors.h"
#include "model/safetensors.h"

// Any bytes are refused with Error or give tensors that lie one after the other within the file;
// as the text of an index, names that stay in the folder.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace bodega;
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const auto header = model::SafetensorsHeader::parse(bytes, "model.safetensors");
    std::uint64_t end = header.data_begin;
    for (const model::TensorEntry& tensor : header.tensors) {
      if (tensor.begin != end) __builtin_trap();
      end += tensor.size;
    }
    if (end != size) __builtin_trap();
  } catch (const Error&) {
  }
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& [tensor, file] : model::parse_safetensors_index(text, "index")) {
      if (file.find('/') != std::string::npos) __builtin_trap();
    }
  } catch (const Error&) {
  }
  return 0;
}
