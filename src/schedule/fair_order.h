#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "core/request.h"

namespace bodega::schedule {

// The order of waiting requests: start-time fair queueing between API keys (Goyal, Vin and Cheng
// 1996). Each key's requests queue up on its own virtual time, a place for every kTokensAPlace
// tokens of prompt, so a key that sends many waits behind itself and not before others. Priority
// is a bounded number of places that later requests may overtake: nobody starves.
class FairOrder {
 public:
  static constexpr int kTokensAPlace = 1024;
  static constexpr std::size_t kKeysKept = 4096;  // keys that still have to wait may be more

  // Lower goes first; equal ones by arrival.
  std::uint64_t rank(const std::string& key, core::Priority priority, int prompt_tokens);
  // A request of this rank and priority has left the queue: virtual time moves on.
  void started(std::uint64_t rank, core::Priority priority);
  std::size_t keys() const { return next_.size(); }

 private:
  std::uint64_t now_ = 0;
  std::size_t sweep_at_ = kKeysKept;
  std::unordered_map<std::string, std::uint64_t> next_;  // each key's next place
};

}  // namespace bodega::schedule
