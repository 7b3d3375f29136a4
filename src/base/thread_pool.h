#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace bodega {

// A fixed set of threads that runs a list of phases with one wake. Within a phase, chunks are taken
// from a shared counter; a phase ends when its chunks are done, not when every thread has arrived,
// so a thread that the system took away holds nothing up but the chunk it was in.
class ThreadPool {
 public:
  struct Phase {
    int chunks = 0;
    // `worker` is below threads(); it may pick scratch memory but must not change the result.
    void (*run)(const void* context, int chunk, int worker) = nullptr;
    const void* context = nullptr;
  };

  explicit ThreadPool(int threads);  // the caller of run() counts as one
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs the phases in order and returns when the last is done. A phase sees all that earlier ones
  // wrote. One caller at a time; a phase must not call run() and must not throw.
  void run(std::span<const Phase> phases);

 private:
  // The state of one phase in one word, so that a thread from an earlier run cannot take a chunk of
  // this one: generation (24 bits), chunks (20), next (20).
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> state{0};
    std::atomic<std::uint32_t> done{0};
  };

  void worker_loop(int worker);
  void work(std::uint32_t generation, int worker);
  bool await(Counter& counter, std::uint32_t generation, std::uint32_t chunks) const;

  std::vector<std::thread> workers_;
  std::unique_ptr<Counter[]> counters_;
  std::atomic<const Phase*> phases_{nullptr};
  std::size_t capacity_ = 0;
  std::atomic<std::uint32_t> phase_count_{0};
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace bodega
