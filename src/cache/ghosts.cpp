#include "cache/ghosts.h"

#include <algorithm>
#include <bit>

namespace bodega::cache {
namespace {

constexpr std::uint64_t kGhostsABlock = 4;

}  // namespace

Ghosts::Ghosts(int blocks) {
  const std::uint64_t wanted = kGhostsABlock * static_cast<std::uint64_t>(std::max(blocks, 1));
  const std::uint64_t buckets = std::bit_ceil(std::max<std::uint64_t>(1, wanted / kWays));
  mask_ = buckets - 1;
  entries_.resize(buckets * kWays);
}

void Ghosts::remember(const Hash128& key, int uses) {
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(bucket(key));
  auto place = std::find_if(first, first + kWays, [&](const Entry& e) { return e.tag == key.low; });
  if (place == first + kWays) --place;
  std::rotate(first, place, place + 1);
  *first = {key.low, static_cast<std::uint8_t>(std::min(uses, 255))};
}

int Ghosts::uses(const Hash128& key) const {
  const std::size_t first = bucket(key);
  for (std::size_t i = first; i < first + kWays; ++i) {
    if (entries_[i].tag == key.low) return entries_[i].uses;
  }
  return 0;
}

}  // namespace bodega::cache
