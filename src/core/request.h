#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bodega::core {

using TokenId = std::int32_t;
using RequestId = std::uint64_t;

enum class Priority { kInteractive, kNormal, kBatch };

// A temperature this small leaves the noise no say; treating it as zero keeps its inverse finite.
inline constexpr float kGreedyBelow = 1e-5F;

// Everything that shapes the next-token choice of one request. Defaults are "no effect".
// The sampler is defined in docs/sampling.md: token = argmax over the survivors of
// logit / temperature + Gumbel(seed, choice, position, id), ties to the lowest id.
struct SamplingParams {
  float temperature = 1.0F;         // below kGreedyBelow = greedy
  float top_p = 1.0F;               // (0, 1]
  int top_k = 0;                    // 0 = off
  float min_p = 0.0F;               // [0, 1]
  float typical_p = 1.0F;           // (0, 1]
  float repetition_penalty = 1.0F;  // > 0, over prompt and output (CTRL, arXiv:1909.05858)
  float presence_penalty = 0.0F;    // [-2, 2], over output
  float frequency_penalty = 0.0F;   // [-2, 2], over output
  std::map<TokenId, float> logit_bias;
  std::uint64_t seed = 0;  // always set: the API draws one where the client gave none
  bool logprobs = false;   // also return the chosen token's log-probability
  int top_logprobs = 0;    // 0-20 alternatives

  bool greedy() const { return temperature < kGreedyBelow; }
  bool needs_history() const {
    return repetition_penalty != 1.0F || presence_penalty != 0.0F || frequency_penalty != 0.0F;
  }
};

// When an answer ends.
struct StopParams {
  int max_tokens = 0;  // >= 1; the API resolves "room left in the context"
  int min_tokens = 0;  // end tokens are not sampled before this many
  bool ignore_eos = false;
  std::vector<std::string> stop{};        // up to 16 strings, matched on text across tokens
  std::vector<TokenId> stop_token_ids{};  // beside the model's own end tokens
  bool include_stop_str_in_output = false;
};

class TokenConstraint;

// One client request, tokenised and validated. `n` choices share the prompt's KV.
struct Request {
  RequestId id = 0;
  std::vector<TokenId> prompt;  // at least one token
  SamplingParams sampling;
  StopParams stop;
  std::shared_ptr<const TokenConstraint> constraint;  // every choice keeps to it; null: free
  int n = 1;
  Priority priority = Priority::kNormal;
  bool prompt_logprobs = false;       // completions `echo` with `logprobs`
  std::vector<TokenId> shown_tokens;  // control tokens whose spelling is part of the text
  std::string cache_salt;             // requests with different salts never share KV
  std::string user_key;               // API key's id: fairness between keys
  // Tests only (worker flag --scripted-model): the ids that each choice "samples", in order.
  std::vector<TokenId> scripted;
};

}  // namespace bodega::core
