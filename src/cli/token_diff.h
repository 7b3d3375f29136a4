#pragma once

#include <optional>
#include <vector>

#include "core/request.h"

namespace bodega::cli {

struct TokenDifference {
  std::size_t choice = 0;
  std::size_t token = 0;  // index of the first that differs, or that one side lacks
};

// Where two answers part; nothing when they are equal. A missing choice counts as an empty one.
std::optional<TokenDifference> first_difference(
    const std::vector<std::vector<core::TokenId>>& before,
    const std::vector<std::vector<core::TokenId>>& now);

}  // namespace bodega::cli
