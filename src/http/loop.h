#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace bodega::http {

// An event loop and its one thread. Servers and clients of one loop call back on that thread, so
// what they share needs no lock.
class Loop {
 public:
  Loop();
  ~Loop();  // stops
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void start();  // begins to run what was posted; a second call does nothing
  void join();   // waits until a callback has stopped the loop
  void stop();   // ends after the callback that is running, and joins; not from the loop's thread
  bool on_thread() const;

  // Both may be called from any thread, also before start(). What has not run by stop() is dropped.
  void post(std::function<void()> task);
  void after(std::chrono::milliseconds delay, std::function<void()> task);

  class Core;  // the Asio side, loop_core.h
  const std::shared_ptr<Core>& core() const { return core_; }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace bodega::http
