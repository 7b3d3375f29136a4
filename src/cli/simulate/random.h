#pragma once

#include <cmath>
#include <cstdint>

namespace bodega::cli {

// SplitMix64 (Steele, Lea and Flood 2014), with distributions of our own: the standard library's
// differ from one to the next, and the same seed shall give the same result everywhere.
class SimRandom {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)
  int between(int least, int most) {
    return least + static_cast<int>(next() % static_cast<std::uint64_t>(most - least + 1));
  }
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }
  // Long-tailed lengths: a geometric mean, and a factor that one in six exceeds.
  int length(double middle, double spread, int most) {
    const double normal =
        std::sqrt(-2 * std::log1p(-uniform())) * std::cos(6.283185307179586 * uniform());
    const double value = middle * std::exp(std::log(spread) * normal);
    return static_cast<int>(std::fmin(std::fmax(value, 1.0), most));
  }
  // Popular things are asked for more: the i-th of `count` about 1/i as often (Zipf).
  int popular(int count) {
    return static_cast<int>(std::exp(uniform() * std::log(static_cast<double>(count) + 1))) - 1;
  }

 private:
  std::uint64_t state_;
};

}  // namespace bodega::cli
