#pragma once

#include <chrono>
#include <cstdint>

namespace bodega {

// Nanoseconds of the monotonic clock: only differences mean anything.
inline std::int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double monotonic_seconds() { return static_cast<double>(monotonic_ns()) * 1e-9; }

// Whole seconds since 1970, for `created` fields.
inline std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class Stopwatch {
 public:
  double seconds() const { return static_cast<double>(monotonic_ns() - start_ns_) * 1e-9; }
  void restart() { start_ns_ = monotonic_ns(); }

 private:
  std::int64_t start_ns_ = monotonic_ns();
};

}  // namespace bodega
