#pragma once

#include <span>
#include <vector>

#include "core/request.h"

namespace bodega::sample {

using core::TokenId;

// An id less likely than e^-30 of the best is never chosen.
inline constexpr double kNeverBelow = -30.0;

struct Candidate {
  TokenId id = 0;
  float logit = 0;
  float mass = 0;      // exp((logit - best) / temperature), not normalised
  float surprise = 0;  // |-log p - entropy|, for typical_p only
};

// Higher logit first, then lower id: the one order in which ids are better or worse.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// True when some id may be cut by more than the e^-30 rule.
bool filters(const core::SamplingParams& params);

// The ids left by top_k, top_p, min_p and typical_p, in this order, and by the e^-30 rule; at least
// the best one. `best` is the largest logit and finite. Each filter sees the probabilities that the
// one before it left, normalised. out: in no particular order.
void find_survivors(std::span<const float> logits, float best, const core::SamplingParams& params,
                    std::vector<Candidate>& out);

// The k best ids of a row, best first; fewer when the row has fewer that are above -infinity.
void find_top(std::span<const float> row, int k, std::vector<Candidate>& out);

}  // namespace bodega::sample
