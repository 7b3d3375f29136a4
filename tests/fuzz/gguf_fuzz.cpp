#include <cstddef>
#include <cstdint>
#include <span>

#include "base/errors.h"
#include "model/config_gguf.h"
#include "model/gguf.h"

// Any bytes are refused with Error or give a header whose every value and tensor can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace bodega;
  const std::string file = "model.gguf";
  try {
    const auto bytes = std::as_bytes(std::span(data, size));
    const model::GgufHeader header = model::GgufHeader::parse(bytes, file);
    for (const model::TensorEntry& tensor : header.tensors()) {
      if (tensor.begin > size || tensor.size > size - tensor.begin) __builtin_trap();
    }
    model::config_from_gguf(header, file);
    model::vocabulary_from_gguf(header, file);
  } catch (const Error&) {
  }
  return 0;
}
