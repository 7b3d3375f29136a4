#pragma once

#include <vector>

#include "sample/row.h"
#include "sample/survivors.h"

namespace bodega::sample {

// Chooses tokens as docs/sampling.md defines: argmax over the survivors of
// (logit - best) / temperature + Gumbel(seed, choice, position, id), ties to the lowest id.
// A row's token depends on that row alone. One sampler a thread: it owns scratch memory.
class Sampler {
 public:
  // Throws Error(kInternal) when no logit is finite or one is +infinity: the model has failed.
  TokenId sample(const Row& row);

 private:
  TokenId sample_all(std::span<const float> logits, float best, const Row& row) const;
  TokenId sample_candidates(float best, const Row& row) const;

  std::vector<float> adjusted_;        // [vocab]
  std::vector<Candidate> candidates_;  // survivors of the row at hand
};

}  // namespace bodega::sample
