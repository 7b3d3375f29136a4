#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "core/request.h"

namespace bodega::sample {

using core::TokenId;

// Which tokens one choice has seen: what its penalties, and nobody else's, are computed from.
class History {
 public:
  explicit History(std::span<const TokenId> prompt);

  void add(TokenId sampled) { ++output_[sampled]; }

  const std::vector<TokenId>& prompt_ids() const { return prompt_; }  // ascending, each once
  const std::unordered_map<TokenId, int>& output_counts() const { return output_; }

 private:
  std::vector<TokenId> prompt_;
  std::unordered_map<TokenId, int> output_;
};

}  // namespace bodega::sample
