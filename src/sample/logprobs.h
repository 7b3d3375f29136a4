#pragma once

#include <span>

#include "core/output.h"

namespace bodega::sample {

inline constexpr float kLowestLogprob = -9999.0F;

// The log-probability of `id` under softmax(logits), and the `top` likeliest ids, best first. Takes
// the model's own logits, before temperature, penalties and bias. Always finite.
core::TokenLogprob token_logprob(std::span<const float> logits, core::TokenId id, int top);

}  // namespace bodega::sample
