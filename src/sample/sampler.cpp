#include "sample/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "sample/row_loops.h"
#include "sample/row_math.h"

namespace bodega::sample {
namespace {

// The best (score, id) so far of one row.
class Contest {
 public:
  Contest(const Row& row, float best)
      : key_(row.noise()),
        best_(static_cast<double>(best)),
        temperature_(static_cast<double>(row.params->temperature)) {}

  void enter(TokenId id, float logit) {
    const double x = (static_cast<double>(logit) - best_) / temperature_;
    if (!(x >= kNeverBelow)) return;
    const double score = x + gumbel(key_, static_cast<std::uint32_t>(id));
    if (score > score_ || (score == score_ && id < winner_)) {
      score_ = score;
      winner_ = id;
    }
  }

  void enter_all(std::span<const float> logits, std::size_t from, std::size_t to) {
    for (std::size_t id = from; id < to; ++id) enter(static_cast<TokenId>(id), logits[id]);
  }

  double score() const { return score_; }
  TokenId winner() const { return winner_; }
  const NoiseKey& key() const { return key_; }

 private:
  NoiseKey key_;
  double best_;
  double temperature_;
  double score_ = -std::numeric_limits<double>::infinity();
  TokenId winner_ = -1;
};

}  // namespace

TokenId Sampler::sample(const Row& row) {
  const std::span<const float> logits = adjusted_logits(row, adjusted_);
  if (row.params->greedy()) {
    const TokenId id = argmax(logits);
    if (id < 0 || !std::isfinite(logits[static_cast<std::size_t>(id)])) {
      throw Error(ErrorKind::kInternal, "The model produced no finite logits.");
    }
    return id;
  }
  const float best = max_of(logits);
  if (!std::isfinite(best)) {
    throw Error(ErrorKind::kInternal, "The model produced no finite logits.");
  }
  if (!filters(*row.params)) return sample_all(logits, best, row);
  find_survivors(logits, best, *row.params, candidates_);
  return sample_candidates(best, row);
}

TokenId Sampler::sample_candidates(float best, const Row& row) const {
  Contest contest(row, best);
  for (const Candidate& candidate : candidates_) contest.enter(candidate.id, candidate.logit);
  return contest.winner();
}

// The same contest with every id in it; only ids that could win pay for logarithms.
TokenId Sampler::sample_all(std::span<const float> logits, float best, const Row& row) const {
  Contest contest(row, best);
  const TokenId favourite = argmax(logits);
  contest.enter(favourite, best);
  const RowLoops& loops = row_loops();
  const float scale = 1.0F / row.params->temperature;
  std::array<std::uint32_t, kNoiseChunk> words;
  std::size_t start = 0;
  for (; start + kNoiseChunk <= logits.size(); start += kNoiseChunk) {
    loops.noise_chunk(contest.key(), static_cast<std::uint32_t>(start), words.data());
    std::uint64_t blocks = loops.possible_winners(logits.data() + start, words.data(), best, scale,
                                                  static_cast<float>(contest.score()));
    for (; blocks != 0; blocks &= blocks - 1) {
      const auto block = static_cast<std::size_t>(std::countr_zero(blocks));
      contest.enter_all(logits, start + kLanes * block, start + kLanes * (block + 1));
    }
  }
  contest.enter_all(logits, start, logits.size());
  return contest.winner();
}

}  // namespace bodega::sample
