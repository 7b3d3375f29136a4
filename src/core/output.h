#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.h"
#include "core/request.h"

namespace bodega::core {

enum class FinishReason { kStop, kLength, kCancelled, kError };

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0.0F;  // natural log; finite: minus infinity is clamped to -9999
  std::vector<std::pair<TokenId, float>> top;  // highest first
};

// What one engine step made of one choice of one request.
struct ChoiceOutput {
  int choice = 0;
  std::string text;                    // whole characters only, stop strings already cut
  std::vector<TokenId> tokens;         // the new tokens, end tokens included
  std::vector<TokenLogprob> logprobs;  // one per token of `tokens`, when asked for
  std::optional<FinishReason> finish;  // set on the choice's last output
  std::string stop_reason;             // the stop string or token text that ended it
};

struct Usage {
  int prompt_tokens = 0;
  int cached_tokens = 0;  // prompt tokens whose KV was really reused
  int completion_tokens = 0;
  int accepted_prediction_tokens = 0;
  int rejected_prediction_tokens = 0;
};

struct Timings {
  double queue_s = 0;    // from submit to the first scheduled row
  double prefill_s = 0;  // from the first scheduled row to the first token
  double decode_s = 0;   // from the first to the last token
};

// Everything one step made for one request, delivered at once so that it leaves in one write.
struct RequestOutput {
  RequestId id = 0;
  std::vector<ChoiceOutput> choices;
  // Once, before the first token, when asked for: entry i is of prompt token i + 1, because nothing
  // predicts the first.
  std::vector<TokenLogprob> prompt_logprobs;
  bool finished = false;                        // every choice has ended; the last output
  Usage usage;                                  // so far; final when finished
  Timings timings;                              // final when finished
  std::string error;                            // set when a choice ended with kError
  ErrorKind error_kind = ErrorKind::kInternal;  // of `error`: kUnavailable for a wait too long
};

}  // namespace bodega::core
