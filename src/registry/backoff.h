#pragma once

#include <algorithm>
#include <chrono>

namespace bodega::registry {

// How long to wait before a worker that died is started again: doubling, bounded, and from the
// beginning again once a worker has stood long enough.
class Backoff {
 public:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr Milliseconds kFirst{250};
  static constexpr Milliseconds kLongest{30000};
  static constexpr Milliseconds kStable{60000};

  // `uptime`: how long the worker that just died had been ready.
  Milliseconds next(Milliseconds uptime) {
    if (uptime >= kStable) next_ = kFirst;
    const Milliseconds now = next_;
    next_ = std::min(next_ * 2, kLongest);
    return now;
  }

 private:
  Milliseconds next_ = kFirst;
};

}  // namespace bodega::registry
