#include "sample/survivors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sample/exp_negative.h"
#include "sample/row_loops.h"
#include "sample/row_math.h"

namespace bodega::sample {
namespace {

using Iterator = std::vector<Candidate>::iterator;

// Calls take(id, logit) for every id with a logit above `bound`, in order. `bound` may be raised on
// the way.
template <typename Take>
void for_each_above(std::span<const float> row, const float& bound, Take take) {
  const auto find = row_loops().block_above;
  for (std::size_t i = find(row.data(), 0, row.size(), bound); i < row.size();
       i = find(row.data(), i + kLanes, row.size(), bound)) {
    for (std::size_t j = i; j < std::min(i + kLanes, row.size()); ++j) {
      if (row[j] > bound) take(static_cast<TokenId>(j), row[j]);
    }
  }
}

// The ids with a logit of at least `lowest`.
void collect(std::span<const float> logits, float lowest, std::vector<Candidate>& out) {
  out.clear();
  const float below = std::nextafter(lowest, -std::numeric_limits<float>::infinity());
  for_each_above(logits, below, [&](TokenId id, float logit) { out.push_back({id, logit}); });
}

double weigh(Iterator first, Iterator last, float best, float scale) {
  double sum = 0;
  for (Iterator c = first; c != last; ++c) {
    c->mass = exp_negative((c->logit - best) * scale);
    sum += static_cast<double>(c->mass);
  }
  return sum;
}

double mass_of(Iterator first, Iterator last) {
  double sum = 0;
  for (; first != last; ++first) sum += static_cast<double>(first->mass);
  return sum;
}

// Keeps the shortest run of `candidates`, in the order `before`, whose mass reaches `need` > 0;
// halves the range that holds the border instead of sorting everything.
template <typename Before>
void keep_mass(std::vector<Candidate>& candidates, double need, Before before) {
  Iterator low = candidates.begin();
  Iterator high = candidates.end();
  while (high - low > 32) {
    const Iterator middle = low + (high - low) / 2;
    std::nth_element(low, middle, high, before);
    const double mass = mass_of(low, middle);
    if (mass >= need) {
      high = middle;
    } else {
      need -= mass;
      low = middle;
    }
  }
  std::sort(low, high, before);
  for (; low != high && need > 0; ++low) need -= static_cast<double>(low->mass);
  candidates.erase(low, candidates.end());
}

// Candidates that certainly include the nucleus, and the mass of the whole row. Most rows have
// their nucleus within a few nats of the best id, so the bound is lowered in steps.
double collect_nucleus(std::span<const float> logits, float best,
                       const core::SamplingParams& params, std::vector<Candidate>& out) {
  const float scale = 1.0F / params.temperature;
  const double total = sum_exp(logits, best, scale);
  for (const float nats : {4.0F, 8.0F, 16.0F, 30.0F}) {
    collect(logits, best - nats * params.temperature, out);
    const double mass = weigh(out.begin(), out.end(), best, scale);
    if (mass >= total * static_cast<double>(params.top_p)) break;
  }
  return total;
}

void keep_typical(float best, const core::SamplingParams& params,
                  std::vector<Candidate>& candidates) {
  const double total = mass_of(candidates.begin(), candidates.end());
  const double log_total = std::log(total);
  auto information = [&](const Candidate& c) {  // -log p
    const double x = (static_cast<double>(c.logit) - static_cast<double>(best)) /
                     static_cast<double>(params.temperature);
    return log_total - x;
  };
  double entropy = 0;
  for (const Candidate& c : candidates) {
    entropy += static_cast<double>(c.mass) / total * information(c);
  }
  for (Candidate& c : candidates) {
    c.surprise = static_cast<float>(std::abs(information(c) - entropy));
  }
  keep_mass(candidates, static_cast<double>(params.typical_p) * total,
            [](const Candidate& a, const Candidate& b) {
              return a.surprise != b.surprise ? a.surprise < b.surprise : better(a, b);
            });
}

// What min_p and the e^-30 rule leave: both compare with the best id alone.
double lowest_logit(float best, const core::SamplingParams& params) {
  double below = kNeverBelow;
  if (params.min_p > 0.0F) below = std::max(below, std::log(static_cast<double>(params.min_p)));
  return static_cast<double>(best) + below * static_cast<double>(params.temperature);
}

}  // namespace

bool filters(const core::SamplingParams& params) {
  return params.top_k > 0 || params.top_p < 1.0F || params.min_p > 0.0F || params.typical_p < 1.0F;
}

void find_survivors(std::span<const float> logits, float best, const core::SamplingParams& params,
                    std::vector<Candidate>& out) {
  const float scale = 1.0F / params.temperature;
  const double lowest = lowest_logit(best, params);
  double total = 0;
  if (params.top_k > 0) {
    find_top(logits, params.top_k, out);
    total = weigh(out.begin(), out.end(), best, scale);
  } else if (params.top_p < 1.0F) {
    total = collect_nucleus(logits, best, params, out);
  } else {
    collect(logits, static_cast<float>(lowest), out);
    weigh(out.begin(), out.end(), best, scale);
  }
  if (params.top_p < 1.0F) keep_mass(out, total * static_cast<double>(params.top_p), better);
  std::erase_if(out, [&](const Candidate& c) { return static_cast<double>(c.logit) < lowest; });
  if (params.typical_p < 1.0F) keep_typical(best, params, out);
}

void find_top(std::span<const float> row, int k, std::vector<Candidate>& out) {
  const auto wanted = static_cast<std::size_t>(std::max(k, 0));
  const std::size_t room = std::max<std::size_t>(2 * wanted, 256);
  float above = -std::numeric_limits<float>::infinity();
  out.clear();
  if (wanted == 0) return;
  auto shrink = [&] {
    if (out.size() <= wanted) return;
    const auto end = out.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::nth_element(out.begin(), end - 1, out.end(), better);
    out.erase(end, out.end());
    above = out.back().logit;  // a later id with the same logit is worse
  };
  for_each_above(row, above, [&](TokenId id, float logit) {
    out.push_back({id, logit});
    if (out.size() >= room) shrink();
  });
  shrink();
  std::sort(out.begin(), out.end(), better);
}

}  // namespace bodega::sample
