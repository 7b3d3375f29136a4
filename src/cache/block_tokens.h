#pragma once

#include <span>

#include "cache/prefix_index.h"

namespace bodega::cache {

// The tokens of the `block`-th whole block.
inline PrefixIndex::BlockTokens block_tokens(std::span<const TokenId> tokens, int block) {
  return tokens.subspan(static_cast<std::size_t>(block) * core::kBlockTokens)
      .first<core::kBlockTokens>();
}

}  // namespace bodega::cache
