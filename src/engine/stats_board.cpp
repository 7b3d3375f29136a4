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

bool StatsBoard::request_came(int max_waiting) {
  std::lock_guard lock(mutex_);
  if (waiting_ >= max_waiting + std::max(spare_, 0)) return false;
  ++waiting_;
  return true;
}

int StatsBoard::retry_after_s() const {
  std::lock_guard lock(mutex_);
  return std::max(1, static_cast<int>(std::ceil(predicted_wait_s())));
}

double StatsBoard::predicted_wait_s() const {
  return spare_ > 0 ? 0.0 : start_interval_s_ * (waiting_ + 1);
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

void StatsBoard::publish(const EngineStats& counters, int spare_sequences) {
  std::lock_guard lock(mutex_);
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
