#include "engine/stats_board.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/clock.h"

namespace bodega::engine {

EngineStats StatsBoard::read() const {
  std::lock_guard lock(mutex_);
  EngineStats stats = counters_;
  stats.waiting = waiting_;
  stats.running = running_;
  stats.alive = alive_;
  stats.predicted_wait_s = predicted_wait_s();
  if (progress_ns_ != 0) {
    stats.last_step_age_s = static_cast<double>(monotonic_ns() - progress_ns_) * 1e-9;
  }
  return stats;
}

std::optional<ErrorKind> StatsBoard::request_came(int max_waiting, double longest_wait_s) {
  std::lock_guard lock(mutex_);
  if (waiting_ >= max_waiting + std::max(spare_, 0)) return ErrorKind::kQueueFull;
  if (predicted_wait_s() > longest_wait_s) return ErrorKind::kUnavailable;
  ++waiting_;
  return std::nullopt;
}

int StatsBoard::retry_after_s() const {
  std::lock_guard lock(mutex_);
  return std::max(1, static_cast<int>(std::ceil(predicted_wait_s())));
}

// Of one more request. Those that came since the last step count too, though the loop has not seen
// them yet.
double StatsBoard::predicted_wait_s() const {
  const int turns = std::max(0, waiting_ + 1 - std::max(spare_, 0));
  return turns * (start_interval_s_ > 0 ? start_interval_s_ : predicted_interval_s_);
}

bool StatsBoard::wait_until_empty(double seconds) {
  std::unique_lock lock(mutex_);
  return emptied_.wait_for(lock, std::chrono::duration<double>(seconds),
                           [this] { return waiting_ + running_ == 0 || !alive_; });
}

void StatsBoard::request_started(double now_s) {
  std::lock_guard lock(mutex_);
  constexpr double kWeight = 0.2;
  const double interval = now_s - last_start_s_;
  if (last_start_s_ > 0 && spare_ <= 0) {
    start_interval_s_ += (start_interval_s_ == 0 ? 1.0 : kWeight) * (interval - start_interval_s_);
  }
  last_start_s_ = now_s;
  --waiting_;
  ++running_;
}

void StatsBoard::request_left(bool started) {
  std::lock_guard lock(mutex_);
  --(started ? running_ : waiting_);
  if (waiting_ + running_ == 0) emptied_.notify_all();
}

void StatsBoard::publish(const EngineStats& counters, int spare_sequences,
                         double start_interval_s) {
  std::lock_guard lock(mutex_);
  predicted_interval_s_ = start_interval_s;
  counters_ = counters;
  spare_ = spare_sequences;
}

void StatsBoard::set_busy(bool busy) {
  std::lock_guard lock(mutex_);
  progress_ns_ = busy ? monotonic_ns() : 0;
}

void StatsBoard::set_stopped() {
  std::lock_guard lock(mutex_);
  alive_ = false;
  progress_ns_ = 0;
  emptied_.notify_all();
}

}  // namespace bodega::engine
