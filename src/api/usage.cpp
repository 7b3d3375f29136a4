#include "api/usage.h"

#include <algorithm>
#include <cmath>

namespace bodega::api {
namespace {

json::value rate(int tokens, double seconds) {
  if (seconds <= 0 || tokens <= 0) return nullptr;
  return std::round(tokens / seconds * 100) / 100;
}

double microseconds(double seconds) { return std::round(seconds * 1e6) / 1e6; }

}  // namespace

void UsageSum::set(int prompt, const core::RequestOutput& output) {
  parts_[prompt] = {output.usage, output.timings};
}

json::object UsageSum::usage() const {
  core::Usage sum;
  for (const Part& part : parts_) {
    sum.prompt_tokens += part.usage.prompt_tokens;
    sum.cached_tokens += part.usage.cached_tokens;
    sum.completion_tokens += part.usage.completion_tokens;
    sum.accepted_prediction_tokens += part.usage.accepted_prediction_tokens;
    sum.rejected_prediction_tokens += part.usage.rejected_prediction_tokens;
  }
  return {{"prompt_tokens", sum.prompt_tokens},
          {"completion_tokens", sum.completion_tokens},
          {"total_tokens", sum.prompt_tokens + sum.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", sum.cached_tokens}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", reasoning_tokens_},
            {"accepted_prediction_tokens", sum.accepted_prediction_tokens},
            {"rejected_prediction_tokens", sum.rejected_prediction_tokens}}}};
}

// The prompts of one answer run side by side, so the longest time of each kind is the answer's.
json::object UsageSum::timings() const {
  core::Timings longest;
  int computed = 0;
  int decoded = 0;
  for (const Part& part : parts_) {
    longest.queue_s = std::max(longest.queue_s, part.timings.queue_s);
    longest.prefill_s = std::max(longest.prefill_s, part.timings.prefill_s);
    longest.decode_s = std::max(longest.decode_s, part.timings.decode_s);
    computed += part.usage.prompt_tokens - part.usage.cached_tokens;
    decoded += part.usage.completion_tokens - 1;  // the first token belongs to the prefill
  }
  return {{"queue_s", microseconds(longest.queue_s)},
          {"prefill_s", microseconds(longest.prefill_s)},
          {"decode_s", microseconds(longest.decode_s)},
          {"prefill_tokens_per_s", rate(computed, longest.prefill_s)},
          {"decode_tokens_per_s", rate(decoded, longest.decode_s)}};
}

}  // namespace bodega::api
