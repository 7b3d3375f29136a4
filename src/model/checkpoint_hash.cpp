#include "model/checkpoint_hash.h"

#include <algorithm>

namespace bodega::model {

void ContentHash::add(const MappedFile& file, std::uint64_t header_bytes,
                      const std::vector<TensorEntry>& tensors) {
  constexpr std::uint64_t kSample = 256;
  file.check_unchanged();
  const auto bytes = file.bytes();
  hash_.add(static_cast<std::uint64_t>(bytes.size()));
  hash_.add(bytes.first(std::min<std::uint64_t>(header_bytes, bytes.size())));
  for (const TensorEntry& tensor : tensors) {
    const auto data = bytes.subspan(tensor.begin, tensor.size);
    const std::uint64_t sample = std::min<std::uint64_t>(kSample, data.size());
    hash_.add(data.first(sample));
    hash_.add(data.subspan((data.size() - sample) / 2, sample));
    hash_.add(data.last(sample));
  }
  file.release(bytes);
}

}  // namespace bodega::model
