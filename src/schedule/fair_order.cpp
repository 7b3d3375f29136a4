#include "schedule/fair_order.h"

#include <algorithm>
#include <array>

namespace bodega::schedule {
namespace {

// Places that others may take before a request of this priority.
constexpr std::array<std::uint64_t, 3> kOvertakers = {0, 64, 1024};

}  // namespace

std::uint64_t FairOrder::rank(const std::string& key, core::Priority priority, int prompt_tokens) {
  if (next_.size() > sweep_at_) {
    std::erase_if(next_, [this](const auto& entry) { return entry.second <= now_ + 1; });
    sweep_at_ = std::max(kKeysKept, 2 * next_.size());
  }
  std::uint64_t& next = next_[key];
  const std::uint64_t place = std::max(now_, next);
  next = place + 1 + static_cast<std::uint64_t>(prompt_tokens / kTokensAPlace);
  return place + kOvertakers[static_cast<std::size_t>(priority)];
}

void FairOrder::started(std::uint64_t rank, core::Priority priority) {
  now_ = std::max(now_, rank - kOvertakers[static_cast<std::size_t>(priority)]);
}

}  // namespace bodega::schedule
