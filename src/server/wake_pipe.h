#pragma once

#include <array>
#include <chrono>
#include <initializer_list>
#include <optional>

namespace bodega::server {

// Turns signals and the news of other threads into bytes that a main thread waits for. Handlers are
// used, not a blocked mask: libraries start threads of their own before main() could block
// anything. One at a time in a process.
class WakePipe {
 public:
  static constexpr char kSignal = 'S';
  static constexpr char kLifelineCut = 'L';

  explicit WakePipe(std::initializer_list<int> signals);  // throws Error(kConfig)
  ~WakePipe();                                            // the signals have their defaults again
  WakePipe(const WakePipe&) = delete;
  WakePipe& operator=(const WakePipe&) = delete;

  void wake(char news) const;  // any thread
  // The next byte, or kLifelineCut when `lifeline_fd` (a pipe's read end, -1 for none) has ended;
  // nothing when `timeout` passes first (negative: never).
  std::optional<char> wait(std::chrono::milliseconds timeout, int lifeline_fd = -1) const;

 private:
  std::array<int, 2> ends_{-1, -1};
  std::array<int, 4> signals_{};  // 0 = unused
};

}  // namespace bodega::server
