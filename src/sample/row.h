#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/request.h"
#include "sample/gumbel.h"
#include "sample/history.h"

namespace bodega::sample {

// One row of logits and all that decides which token it becomes.
struct Row {
  std::span<const float> logits;  // [vocab]; NaN can never be chosen
  const core::SamplingParams* params = nullptr;
  const History* history = nullptr;  // needed when params->needs_history()
  std::span<const TokenId> banned;   // end tokens, before min_tokens is reached
  // A bit an id (id % 32 of word id / 32), where a grammar binds; empty: any id.
  std::span<const std::uint32_t> allowed;
  int choice = 0;
  int position = 0;  // absolute position of the token that is chosen

  NoiseKey noise() const {
    return {params->seed, static_cast<std::uint32_t>(choice), static_cast<std::uint32_t>(position)};
  }
};

inline bool is_allowed(std::span<const std::uint32_t> allowed, TokenId id) {
  const auto bit = static_cast<std::size_t>(id);
  return bit / 32 < allowed.size() && (allowed[bit / 32] >> (bit % 32) & 1U) != 0;
}

// The logits after grammar, penalties, bias and bans, in this order (docs/sampling.md). Returns
// row.logits itself when nothing changes, else `scratch`. Ids outside the vocabulary are passed
// over.
std::span<const float> adjusted_logits(const Row& row, std::vector<float>& scratch);

}  // namespace bodega::sample
