#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/hash.h"
#include "engine/disk/store_header.h"

// Any page is refused or gives at most 32 blocks, and what it gives is written as the same page.
// The page's checksum is made right, or nothing would get past it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace bodega;
  engine::HeaderPage page{};
  std::memcpy(page.data(), data, std::min(size, page.size()));
  const std::size_t checked = page.size() - sizeof(std::uint64_t);
  const std::uint64_t sum = hash64(std::span<const std::byte>(page).first(checked));
  std::memcpy(page.data() + checked, &sum, sizeof(sum));
  const auto header = engine::decode_header(page);
  if (!header) return 0;
  if (header->blocks.empty() || header->blocks.size() > 32) __builtin_trap();
  const auto again = engine::decode_header(engine::encode_header(*header));
  if (!again || again->blocks.size() != header->blocks.size()) __builtin_trap();
  return 0;
}
