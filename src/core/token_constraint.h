#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/request.h"

namespace bodega::core {

// What may come next.
enum class NextTokens { kAny, kAnyButEnd, kListed };

// The place of one answer in a grammar. Used by one thread at a time.
class TokenMatcher {
 public:
  virtual ~TokenMatcher() = default;

  // For kListed the ids are in `words`, which has a bit for each id of the model: bit id % 32 of
  // word id / 32. May take milliseconds. Throws Error(kInvalidRequest) where the grammar has become
  // too costly to follow.
  virtual NextTokens allowed(std::vector<std::uint32_t>& words) = 0;

  // What was chosen, one of the allowed ids; true when nothing may follow.
  virtual bool accept(TokenId id) = 0;
};

// What an answer is bound to: a compiled grammar. Shared by all choices; thread-safe.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  virtual std::unique_ptr<TokenMatcher> start() const = 0;
};

}  // namespace bodega::core
