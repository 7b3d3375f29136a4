#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace bodega::cli {

// Durations in buckets of 2 %, from a microsecond to a day: quantiles of any number of them in a
// fixed space.
class Histogram {
 public:
  void add(double seconds, std::uint64_t count = 1) {
    const double steps = std::log(std::max(seconds, kLeast) / kLeast) / kStep;
    buckets_[std::min(static_cast<std::size_t>(steps), kBuckets - 1)] += count;
    count_ += count;
  }
  double quantile(double share) const {
    const auto rank = static_cast<std::uint64_t>(share * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += buckets_[i];
      if (seen > rank) return kLeast * std::exp((static_cast<double>(i) + 0.5) * kStep);
    }
    return 0;
  }
  std::uint64_t count() const { return count_; }
  void merge(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
  }

 private:
  static constexpr double kLeast = 1e-6;
  static constexpr double kStep = 0.02;
  static constexpr std::size_t kBuckets = 1260;  // e^(1260 x 0.02) microseconds is a day

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
};

}  // namespace bodega::cli
