#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace bodega::cache {

using DiskFileId = std::uint64_t;
inline constexpr DiskFileId kNoFile = 0;

// Where a block lies on the SSD.
struct DiskSlot {
  DiskFileId file = kNoFile;
  int index = 0;  // of the block in its file
};

// Which blocks are on the SSD, by the key of their prefix, and which file goes when the budget is
// full: the one used least and longest ago (its uses are added to a clock that moves on with every
// file that goes). Knows no file system: names are hashes, bytes are counts.
class DiskIndex {
 public:
  explicit DiskIndex(std::int64_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // A file with the blocks of these keys is on the disk. Keys that another file has stay there.
  // Returns its id; a name that is known already only keeps its own.
  DiskFileId add(const Hash128& name, std::span<const Hash128> keys, std::int64_t bytes);
  void remove(DiskFileId file);  // gone, or not to be believed
  std::optional<DiskSlot> find(const Hash128& key) const;
  void used(DiskFileId file);

  // The next file to delete while more is stored than the budget allows.
  std::optional<DiskFileId> over_budget() const;
  const Hash128& name(DiskFileId file) const { return files_.at(file).name; }
  bool contains(DiskFileId file) const { return files_.contains(file); }

  std::int64_t bytes() const { return bytes_; }
  std::int64_t budget_bytes() const { return budget_bytes_; }
  int blocks() const { return static_cast<int>(slots_.size()); }
  int files() const { return static_cast<int>(files_.size()); }

  // Throws std::logic_error when keys, files and bytes disagree.
  void check() const;

 private:
  struct File {
    Hash128 name;
    std::vector<Hash128> keys;
    std::int64_t bytes = 0;
    std::uint64_t uses = 1;
    std::uint64_t worth = 0;
  };
  void rank(DiskFileId id, File& file);

  std::int64_t budget_bytes_;
  std::int64_t bytes_ = 0;
  std::uint64_t clock_ = 0;
  DiskFileId last_ = kNoFile;
  std::unordered_map<DiskFileId, File> files_;
  std::unordered_map<Hash128, DiskFileId, Hash128Hasher> names_;
  std::unordered_map<Hash128, DiskSlot, Hash128Hasher> slots_;
  std::set<std::pair<std::uint64_t, DiskFileId>> order_;  // by worth
};

}  // namespace bodega::cache
