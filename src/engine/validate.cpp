#include "engine/validate.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "base/errors.h"

namespace bodega::engine {
namespace {

void require(bool holds, const char* message, const char* param) {
  if (!holds) throw Error(ErrorKind::kInvalidRequest, message, param);
}

void validate_sampling(const core::SamplingParams& p, int vocab_size) {
  require(p.temperature >= 0.0F && std::isfinite(p.temperature), "temperature must be 0 or more.",
          "temperature");
  require(p.top_p > 0.0F && p.top_p <= 1.0F, "top_p must be above 0 and at most 1.", "top_p");
  require(p.top_k >= 0, "top_k must be 0 (off) or more.", "top_k");
  require(p.min_p >= 0.0F && p.min_p <= 1.0F, "min_p must be from 0 to 1.", "min_p");
  require(p.typical_p > 0.0F && p.typical_p <= 1.0F, "typical_p must be above 0 and at most 1.",
          "typical_p");
  require(p.repetition_penalty > 0.0F && std::isfinite(p.repetition_penalty),
          "repetition_penalty must be above 0.", "repetition_penalty");
  require(std::isfinite(p.presence_penalty), "presence_penalty must be a number.",
          "presence_penalty");
  require(std::isfinite(p.frequency_penalty), "frequency_penalty must be a number.",
          "frequency_penalty");
  require(p.top_logprobs >= 0, "top_logprobs must be 0 or more.", "top_logprobs");
  for (const auto& [id, bias] : p.logit_bias) {
    require(id >= 0 && id < vocab_size, "logit_bias has a key that is no token of this model.",
            "logit_bias");
    require(std::isfinite(bias), "logit_bias values must be numbers.", "logit_bias");
  }
}

void validate_stop(const core::StopParams& stop, int vocab_size) {
  require(stop.max_tokens >= 0, "max_tokens must be 0 or more.", "max_tokens");
  require(stop.min_tokens >= 0 && stop.min_tokens <= stop.max_tokens,
          "min_tokens must be from 0 to max_tokens.", "min_tokens");
  for (const std::string& text : stop.stop) {
    require(!text.empty(), "A stop string must not be empty.", "stop");
  }
  for (const core::TokenId id : stop.stop_token_ids) {
    require(id >= 0 && id < vocab_size, "stop_token_ids has an id that is no token of this model.",
            "stop_token_ids");
  }
}

void validate_length(const core::Request& request, int context_tokens) {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  if (prompt + request.stop.max_tokens <= context_tokens) return;
  throw Error(ErrorKind::kContextLengthExceeded,
              "At most " + std::to_string(context_tokens) + " tokens fit, but the prompt has " +
                  std::to_string(prompt) + " and the answer may have " +
                  std::to_string(request.stop.max_tokens) +
                  ": shorten the prompt or lower max_tokens.",
              "messages");
}

}  // namespace

void validate(const core::Request& request, const RequestLimits& limits) {
  require(!request.prompt.empty(), "The prompt must have at least one token.", "prompt");
  require(request.n >= 1, "n must be 1 or more.", "n");
  for (const core::TokenId id : request.prompt) {
    require(id >= 0 && id < limits.vocab_size,
            "The prompt has an id that is no token of this model.", "prompt");
  }
  for (const core::TokenId id : request.scripted) {
    require(id >= 0 && id < limits.vocab_size,
            "The script has an id that is no token of this model.", "scripted");
  }
  validate_sampling(request.sampling, limits.vocab_size);
  validate_stop(request.stop, limits.vocab_size);
  validate_length(request, limits.context_tokens);
}

}  // namespace bodega::engine
