#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "engine/engine.h"

namespace bodega::engine {

// What other threads may know of the loop, and the count of requests that the queue bound is about.
class StatsBoard {
 public:
  // --- any thread ---
  EngineStats read() const;
  // Counts a new request; false when `max_waiting` wait beside those that can start at once.
  bool request_came(int max_waiting);
  int retry_after_s() const;
  // True when no request was left within `seconds`.
  bool wait_until_empty(double seconds);

  // --- the loop, and submit() for a request that never reached it ---
  void request_started(double now_s);
  void request_left(bool started);

  // --- the loop ---
  // Fields that the board counts itself (waiting, running, age, wait, alive) are kept.
  void publish(const EngineStats& counters, int spare_sequences);
  void set_busy(bool busy);  // true again and again while the loop makes progress
  void set_stopped();

 private:
  double predicted_wait_s() const;

  mutable std::mutex mutex_;  // guards everything; held for a copy
  std::condition_variable emptied_;
  EngineStats counters_;
  int waiting_ = 0;
  int running_ = 0;
  int spare_ = 1;                 // sequences that could start at once
  std::int64_t progress_ns_ = 0;  // 0: idle
  double last_start_s_ = 0;
  double start_interval_s_ = 0;  // between two starts while others wait, smoothed
  bool alive_ = true;
};

}  // namespace bodega::engine
