#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "sample/row.h"

// docs/sampling.md written down once more, in double, with sorts and without any shortcut.
namespace bodega::sample::reference {

inline std::vector<double> adjusted(const Row& row) {
  std::vector<double> x(row.logits.begin(), row.logits.end());
  const core::SamplingParams& p = *row.params;
  if (row.history != nullptr) {
    std::set<TokenId> seen(row.history->prompt_ids().begin(), row.history->prompt_ids().end());
    for (const auto& [id, _] : row.history->output_counts()) seen.insert(id);
    for (const TokenId id : seen) {
      double& l = x[static_cast<std::size_t>(id)];
      l = l > 0 ? l / static_cast<double>(p.repetition_penalty)
                : l * static_cast<double>(p.repetition_penalty);
    }
    for (const auto& [id, count] : row.history->output_counts()) {
      x[static_cast<std::size_t>(id)] -= static_cast<double>(p.frequency_penalty) * count +
                                         static_cast<double>(p.presence_penalty);
    }
  }
  for (const auto& [id, bias] : p.logit_bias) {
    x[static_cast<std::size_t>(id)] += static_cast<double>(bias);
  }
  for (const TokenId id : row.banned) {
    x[static_cast<std::size_t>(id)] = -std::numeric_limits<double>::infinity();
  }
  return x;
}

struct Entry {
  TokenId id;
  double logit;
  double p;
};

inline void normalise(std::vector<Entry>& entries) {
  double sum = 0;
  for (const Entry& e : entries) sum += e.p;
  for (Entry& e : entries) e.p /= sum;
}

template <typename Key>
void keep_mass(std::vector<Entry>& entries, double need, Key key) {
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    return std::tuple(key(a), -a.logit, a.id) < std::tuple(key(b), -b.logit, b.id);
  });
  double sum = 0;
  std::size_t kept = 0;
  while (kept < entries.size() && sum < need) sum += entries[kept++].p;
  entries.resize(std::max<std::size_t>(kept, 1));
  normalise(entries);
}

inline std::vector<Entry> survivors(const std::vector<double>& logits,
                                    const core::SamplingParams& params) {
  const double best = *std::max_element(logits.begin(), logits.end());
  const double t = static_cast<double>(params.temperature);
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    entries.push_back({static_cast<TokenId>(i), logits[i], std::exp((logits[i] - best) / t)});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(-a.logit, a.id) < std::pair(-b.logit, b.id);
  });
  if (params.top_k > 0 && entries.size() > static_cast<std::size_t>(params.top_k)) {
    entries.resize(static_cast<std::size_t>(params.top_k));
  }
  normalise(entries);
  if (params.top_p < 1.0F) {
    keep_mass(entries, static_cast<double>(params.top_p), [](const Entry& e) { return -e.logit; });
  }
  const double floor = std::max(-30.0, std::log(static_cast<double>(params.min_p)));
  std::erase_if(entries, [&](const Entry& e) { return (e.logit - best) / t < floor; });
  normalise(entries);
  if (params.typical_p < 1.0F) {
    double entropy = 0;
    for (const Entry& e : entries) entropy -= e.p * std::log(e.p);
    keep_mass(entries, static_cast<double>(params.typical_p),
              [&](const Entry& e) { return std::abs(-std::log(e.p) - entropy); });
  }
  return entries;
}

inline TokenId sample(const Row& row) {
  const std::vector<double> logits = adjusted(row);
  const double best = *std::max_element(logits.begin(), logits.end());
  if (row.params->greedy()) {
    return static_cast<TokenId>(std::find(logits.begin(), logits.end(), best) - logits.begin());
  }
  std::vector<Entry> entries = survivors(logits, *row.params);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.id < b.id; });
  TokenId winner = -1;
  double score = -std::numeric_limits<double>::infinity();
  for (const Entry& e : entries) {
    const double s = (e.logit - best) / static_cast<double>(row.params->temperature) +
                     gumbel(row.noise(), static_cast<std::uint32_t>(e.id));
    if (s > score) {
      score = s;
      winner = e.id;
    }
  }
  return winner;
}

// Logits as a language model makes them: a broad bulk and a few leaders.
inline std::vector<float> random_logits(std::mt19937& random, int vocab) {
  std::normal_distribution<float> bulk(0.0F, 2.5F);
  std::vector<float> logits(static_cast<std::size_t>(vocab));
  for (float& l : logits) l = bulk(random);
  const int leaders = static_cast<int>(random() % 8);
  for (int i = 0; i < leaders; ++i) {
    logits[random() % logits.size()] = 8.0F + 2.0F * bulk(random);
  }
  return logits;
}

}  // namespace bodega::sample::reference
