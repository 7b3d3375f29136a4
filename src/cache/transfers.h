#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "cache/block_pool.h"
#include "cache/disk_index.h"
#include "core/batch.h"

namespace bodega::cache {

using TransferId = std::uint64_t;
inline constexpr TransferId kNoTransfer = 0;

// A block as the SSD knows it. The key is the hash of the salted prefix up to its end; parent and
// tokens are kept beside it, so that a block is believed only for what it really holds.
struct StoredBlock {
  Hash128 key;
  Hash128 parent;
  std::array<core::TokenId, core::kBlockTokens> tokens{};
};

// Blocks to be written to one file. They are findable and stay as they are until it has ended.
struct SpillJob {
  TransferId id = kNoTransfer;
  Hash128 name;                     // of the file: a hash of the keys
  std::vector<StoredBlock> stored;  // in order of the prefix
  std::vector<BlockId> blocks;
};

// Blocks to be filled from the SSD, in order of the prefix. Nobody reads them until it has ended.
struct RestoreJob {
  struct Part {
    DiskSlot slot;
    Hash128 file;  // its name
    StoredBlock expected;
    BlockId block = kNoBlock;
  };
  TransferId id = kNoTransfer;
  std::vector<Part> parts;
};

}  // namespace bodega::cache
