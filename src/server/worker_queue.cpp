#include "server/worker_queue.h"

#include <optional>
#include <utility>

#include "base/errors.h"

namespace bodega::server {

WorkQueue::WorkQueue(int threads, std::size_t capacity) : tasks_(capacity) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] {
      while (std::optional<std::function<void()>> task = tasks_.pop()) (*task)();
    });
  }
}

WorkQueue::~WorkQueue() { stop(); }

void WorkQueue::stop() {
  tasks_.close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkQueue::post(std::function<void()> task) {
  if (tasks_.try_push(std::move(task))) return;
  Error error(ErrorKind::kQueueFull, "Too many requests are being prepared. Try again soon.");
  error.retry_after_s = 1;
  throw error;
}

}  // namespace bodega::server
