#pragma once

#include "core/request.h"

namespace bodega::engine {

struct RequestLimits {
  int vocab_size = 0;
  int context_tokens = 0;  // prompt and answer
};

// Throws Error(kInvalidRequest or kContextLengthExceeded) that names the field for a request that
// the engine cannot serve. The API has its own, earlier checks; this is the engine's door.
void validate(const core::Request& request, const RequestLimits& limits);

}  // namespace bodega::engine
