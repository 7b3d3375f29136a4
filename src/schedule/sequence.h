#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/kv_cache.h"
#include "core/request.h"

namespace bodega::schedule {

using core::TokenId;
using SequenceId = std::uint64_t;
inline constexpr SequenceId kNoSequence = 0;

// What the policy has to know of a new sequence (one choice of one request).
struct SequenceSpec {
  SequenceId id = kNoSequence;    // never used twice
  std::vector<TokenId> prompt{};  // at least one token
  std::string cache_salt{};
  std::string user_key{};  // API key's id: waiting requests of different keys take turns
  core::Priority priority = core::Priority::kNormal;
  // Logits of every prompt row are wanted, so none may be skipped.
  bool wants_prompt_rows = false;
  // The choice whose prompt this one shares: it starts when the leader's prompt has been computed.
  SequenceId leader = kNoSequence;
};

// One choice as the scheduler keeps it: gated (its leader's prompt is not there yet), paused,
// waiting or admitted; an admitted one is in prefill while pending() > 1 and decodes at pending()
// == 1.
struct Sequence {
  explicit Sequence(SequenceSpec&& spec, std::uint64_t rank_)
      : id(spec.id),
        rank(rank_),
        priority(spec.priority),
        tokens(std::move(spec.prompt)),
        prompt_tokens(static_cast<int>(tokens.size())),
        wants_prompt_rows(spec.wants_prompt_rows),
        table(std::move(spec.cache_salt)) {}

  SequenceId id;
  std::uint64_t rank;  // lower = earlier; ties by id
  core::Priority priority;
  std::vector<TokenId> tokens;  // prompt, then what was sampled
  int prompt_tokens;
  bool wants_prompt_rows;
  int prompt_rows_seen = 0;  // prompt rows whose logits were delivered
  int computed = 0;          // positions [0, computed) are in the cache
  int reused = 0;            // of them, prompt tokens found in the cache at the first admission
  bool started = false;      // was admitted once
  bool admitted = false;
  bool gated = false;
  bool paused = false;       // keeps its blocks, until another one needs them
  bool prompt_done = false;  // the whole prompt was computed once
  cache::TransferId restoring = cache::kNoTransfer;  // admitted, but its prefix is being read
  int planned = 0;                                   // rows of the step that is being put together
  std::uint64_t last_step = 0;
  std::vector<SequenceId> followers;  // gated choices of the same request
  cache::BlockTable table;

  int pending() const { return static_cast<int>(tokens.size()) - computed; }
};

}  // namespace bodega::schedule
