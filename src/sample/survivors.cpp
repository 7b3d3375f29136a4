#include "sample/survivors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sample/row_math.h"

namespace bodega::sample {
namespace {

using Iterator = std::vector<Candidate>::iterator;

// Appends the ids with a logit of at least `lowest`.
void collect(std::span<const float> logits, float lowest, std::vector<Candidate>& out) {
  constexpr std::size_t kBlock = 16;
  out.clear();
  std::size_t i = 0;
  auto take = [&](std::size_t index) {
    if (logits[index] >= lowest) out.push_back({static_cast<TokenId>(index), logits[index], 0});
  };
  for (; i + kBlock <= logits.size(); i += kBlock) {
    int hits = 0;
    for (std::size_t j = 0; j < kBlock; ++j) hits |= logits[i + j] >= lowest;
    for (std::size_t j = 0; hits != 0 && j < kBlock; ++j) take(i + j);
  }
  for (; i < logits.size(); ++i) take(i);
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

// Keeps the shortest run of `candidates`, in the order `before`, whose mass reaches `need`; halves
// the range that holds the border instead of sorting everything.
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
  if (low == candidates.begin()) ++low;
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

void keep_typical(double typical_p, std::vector<Candidate>& candidates) {
  const double total = mass_of(candidates.begin(), candidates.end());
  double entropy = 0;
  for (const Candidate& c : candidates) {
    const double p = static_cast<double>(c.mass) / total;
    if (p > 0) entropy -= p * std::log(p);
  }
  auto surprise = [&](const Candidate& c) {
    return std::abs(-std::log(static_cast<double>(c.mass) / total) - entropy);
  };
  keep_mass(candidates, typical_p * total, [&](const Candidate& a, const Candidate& b) {
    const double x = surprise(a);
    const double y = surprise(b);
    return x != y ? x < y : better(a, b);
  });
}

}  // namespace

bool filters(const core::SamplingParams& params) {
  return params.top_k > 0 || params.top_p < 1.0F || params.min_p > 0.0F || params.typical_p < 1.0F;
}

void find_survivors(std::span<const float> logits, float best, const core::SamplingParams& params,
                    std::vector<Candidate>& out) {
  const float scale = 1.0F / params.temperature;
  double total = 0;
  if (params.top_k > 0) {
    find_top(logits, params.top_k, out);
    total = weigh(out.begin(), out.end(), best, scale);
  } else if (params.top_p < 1.0F) {
    total = collect_nucleus(logits, best, params, out);
  } else {
    collect(logits, best + static_cast<float>(kNeverBelow) * params.temperature, out);
    weigh(out.begin(), out.end(), best, scale);
  }
  if (params.top_p < 1.0F) keep_mass(out, total * static_cast<double>(params.top_p), better);
  double lowest = kNeverBelow * static_cast<double>(params.temperature);
  if (params.min_p > 0.0F) {
    lowest = std::max(lowest, std::log(static_cast<double>(params.min_p)) *
                                  static_cast<double>(params.temperature));
  }
  std::erase_if(out, [&](const Candidate& c) {
    return static_cast<double>(c.logit) - static_cast<double>(best) < lowest;
  });
  if (params.typical_p < 1.0F) keep_typical(static_cast<double>(params.typical_p), out);
}

void find_top(std::span<const float> row, int k, std::vector<Candidate>& out) {
  constexpr std::size_t kBlock = 16;
  const auto wanted = static_cast<std::size_t>(std::max(k, 0));
  const std::size_t room = std::max<std::size_t>(2 * wanted, 256);
  float above = -std::numeric_limits<float>::infinity();
  out.clear();
  auto shrink = [&] {
    if (out.size() <= wanted) return;
    const auto end = out.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::nth_element(out.begin(), end - 1, out.end(), better);
    out.erase(end, out.end());
    above = out.back().logit;  // a later id with the same logit is worse
  };
  for (std::size_t i = 0; wanted > 0 && i < row.size(); i += kBlock) {
    const std::size_t end = std::min(i + kBlock, row.size());
    int hits = 0;
    for (std::size_t j = i; j < end; ++j) hits |= row[j] > above;
    for (std::size_t j = i; hits != 0 && j < end; ++j) {
      if (row[j] > above) out.push_back({static_cast<TokenId>(j), row[j], 0});
    }
    if (out.size() >= room) shrink();
  }
  shrink();
  std::sort(out.begin(), out.end(), better);
}

}  // namespace bodega::sample
