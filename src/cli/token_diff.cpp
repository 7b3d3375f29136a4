#include "cli/token_diff.h"

#include <algorithm>

namespace bodega::cli {

std::optional<TokenDifference> first_difference(
    const std::vector<std::vector<core::TokenId>>& before,
    const std::vector<std::vector<core::TokenId>>& now) {
  static const std::vector<core::TokenId> kNothing;
  for (std::size_t choice = 0; choice < std::max(before.size(), now.size()); ++choice) {
    const auto& was = choice < before.size() ? before[choice] : kNothing;
    const auto& is = choice < now.size() ? now[choice] : kNothing;
    const auto [a, b] = std::mismatch(was.begin(), was.end(), is.begin(), is.end());
    if (a != was.end() || b != is.end()) {
      return TokenDifference{choice, static_cast<std::size_t>(a - was.begin())};
    }
  }
  return std::nullopt;
}

}  // namespace bodega::cli
