#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "base/errors.h"
#include "engine/engine.h"

namespace bodega::engine {

// What other threads may know of the loop, and the count of requests that the queue bound is about.
class StatsBoard {
 public:
  // --- any thread ---
  EngineStats read() const;
  // Counts a new request, or says why it cannot come: `max_waiting` wait already beside those that
  // can start at once (kQueueFull), or it would wait for longer than `longest_wait_s`
  // (kUnavailable).
  std::optional<ErrorKind> request_came(int max_waiting, double longest_wait_s);
  int retry_after_s() const;
  // True when no request was left within `seconds`.
  bool wait_until_empty(double seconds);

  // --- the loop, and submit() for a request that never reached it ---
  void request_started(double now_s);
  void request_left(bool started);

  // --- the loop ---
  // Fields that the board counts itself (waiting, running, age, wait, alive) are kept.
  // `start_interval_s`: predicted time between two starts while others wait; used until such
  // intervals have been seen.
  void publish(const EngineStats& counters, int spare_sequences, double start_interval_s);
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
  double predicted_interval_s_ = 0;
  bool alive_ = true;
};

}  // namespace bodega::engine
