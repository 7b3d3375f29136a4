#include "engine/live_request.h"

#include <algorithm>

namespace bodega::engine {

bool LiveRequest::finished() const {
  return std::all_of(choices.begin(), choices.end(),
                     [](const auto& c) { return c->done.has_value(); });
}

core::Timings LiveRequest::timings() const {
  core::Timings timings;
  if (!started()) return timings;
  timings.queue_s = started_s - submitted_s;
  if (first_token_s == 0) return timings;
  timings.prefill_s = first_token_s - started_s;
  timings.decode_s = last_token_s - first_token_s;
  return timings;
}

}  // namespace bodega::engine
