#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/bounded_queue.h"

namespace bodega::server {

// A few threads for work that is too long for the event loop: parsing large bodies, rendering,
// tokenising. Tasks must not throw.
class WorkQueue {
 public:
  WorkQueue(int threads, std::size_t capacity);
  ~WorkQueue();  // stops
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void stop();                            // finishes what was posted; later posts fail
  void post(std::function<void()> task);  // throws Error(kQueueFull)

 private:
  BoundedQueue<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
};

}  // namespace bodega::server
