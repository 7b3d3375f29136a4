#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/transfers.h"

namespace bodega::engine {

inline constexpr std::size_t kHeaderBytes = 4096;
using HeaderPage = std::array<std::byte, kHeaderBytes>;

// The first page of a file of KV blocks.
struct StoreHeader {
  Hash128 subject;
  std::uint64_t block_bytes = 0;
  std::vector<cache::StoredBlock> blocks;  // at most 32
  std::vector<std::uint64_t> checksums;    // one a block
};

HeaderPage encode_header(const StoreHeader& header);
// nullopt: not such a page, of another version, or damaged. Reads untrusted bytes.
std::optional<StoreHeader> decode_header(std::span<const std::byte, kHeaderBytes> page);

}  // namespace bodega::engine
