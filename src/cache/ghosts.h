#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"

namespace bodega::cache {

// How often blocks that are gone had been used, so that one that comes back is not taken for new: a
// scan of new documents then does not push out what is asked for again and again. A fixed table;
// a new entry overwrites an old one.
class Ghosts {
 public:
  explicit Ghosts(int blocks);

  void remember(const Hash128& key, int uses);
  int uses(const Hash128& key) const;  // 0: unknown

 private:
  struct Entry {
    std::uint64_t tag = 0;
    std::uint8_t uses = 0;
  };
  static constexpr std::size_t kWays = 4;

  std::size_t bucket(const Hash128& key) const { return (key.high & mask_) * kWays; }

  std::uint64_t mask_;
  std::vector<Entry> entries_;  // [buckets, kWays], the newest of a bucket first
};

}  // namespace bodega::cache
