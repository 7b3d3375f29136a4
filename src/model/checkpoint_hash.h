#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "model/mapped_file.h"
#include "model/tensor_entry.h"

namespace bodega::model {

// XXH3-128 over what tells one model from another without reading it all: each file's header and
// size, and of every tensor its first, middle and last 256 bytes. Names of files do not count.
class ContentHash {
 public:
  void add(const MappedFile& file, std::uint64_t header_bytes,
           const std::vector<TensorEntry>& tensors);
  void add_text(std::string_view text) { hash_.add(text); }  // config.json and the like
  std::string finish() const { return to_hex(hash_.finish()); }

 private:
  Hasher128 hash_;
};

}  // namespace bodega::model
