#pragma once

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
  int choice = 0;
  int position = 0;  // absolute position of the token that is chosen

  NoiseKey noise() const {
    return {params->seed, static_cast<std::uint32_t>(choice), static_cast<std::uint32_t>(position)};
  }
};

// The logits after penalties, bias and bans, in this order (docs/sampling.md). Returns row.logits
// itself when nothing changes, else `scratch`. Ids outside the vocabulary are passed over.
std::span<const float> adjusted_logits(const Row& row, std::vector<float>& scratch);

}  // namespace bodega::sample
