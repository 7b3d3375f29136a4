#include "sample/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/errors.h"
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

constexpr int kChunk = 1024;  // ids whose noise is drawn at once
constexpr int kGroup = 16;

// Bit i of the result: group i of the chunk may hold an id that beats `score`. An id wins only when
// -log1p(-u) <= exp(x - score), and -log1p(-u) >= u >= word / 2^32, so most ids are ruled out by
// their first word; the margin covers the rounding of this float estimate.
std::uint64_t possible_groups(const float* logits, const std::uint32_t* words, float best,
                              float scale, float score) {
  constexpr float kMargin = 1.0001F * 0x1.0p32F;
  std::uint64_t groups = 0;
  for (int group = 0; group < kChunk / kGroup; ++group) {
    int hits = 0;
    for (int i = group * kGroup; i < (group + 1) * kGroup; ++i) {
      const float x = (logits[i] - best) * scale - score;
      const float bound = exp_negative(x < 0.0F ? x : 0.0F) * kMargin;
      // Half of the word fits a signed conversion, which every instruction set has.
      hits |= 2.0F * static_cast<float>(static_cast<std::int32_t>(words[i] >> 1)) <= bound;
    }
    groups |= static_cast<std::uint64_t>(hits) << group;
  }
  return groups;
}

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
  const float scale = 1.0F / row.params->temperature;
  const int size = static_cast<int>(logits.size());
  std::array<std::uint32_t, kChunk> words;
  int start = 0;
  for (; start + kChunk <= size; start += kChunk) {
    noise_words(contest.key(), static_cast<std::uint32_t>(start / 4), kChunk / 4, words.data());
    std::uint64_t groups = possible_groups(logits.data() + start, words.data(), best, scale,
                                           static_cast<float>(contest.score()));
    for (; groups != 0; groups &= groups - 1) {
      const int first = start + kGroup * std::countr_zero(groups);
      for (int id = first; id < first + kGroup; ++id) {
        contest.enter(id, logits[static_cast<std::size_t>(id)]);
      }
    }
  }
  for (; start < size; ++start) contest.enter(start, logits[static_cast<std::size_t>(start)]);
  return contest.winner();
}

}  // namespace bodega::sample
