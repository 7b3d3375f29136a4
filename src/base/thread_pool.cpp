#include "base/thread_pool.h"

#include <algorithm>

namespace bodega {
namespace {

constexpr int kSpins = 2000;  // some 20 us: longer than the gap between two phases or two steps
constexpr std::uint64_t kFieldMask = (1U << 20U) - 1;
constexpr std::uint32_t kGenerationMask = (1U << 24U) - 1;

std::uint64_t pack(std::uint32_t generation, std::uint64_t chunks) {
  return (std::uint64_t{generation & kGenerationMask} << 40U) | (chunks << 20U);
}
std::uint32_t generation_of(std::uint64_t state) {
  return static_cast<std::uint32_t>(state >> 40U);
}
std::uint32_t chunks_of(std::uint64_t state) {
  return static_cast<std::uint32_t>((state >> 20U) & kFieldMask);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr std::size_t kMaxPhases = 4096;

}  // namespace

ThreadPool::ThreadPool(int threads) : counters_(new Counter[kMaxPhases]), capacity_(kMaxPhases) {
  for (int i = 1; i < std::max(threads, 1); ++i) {
    workers_.emplace_back([this, i] { worker_loop(i); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  // A thread that fell asleep on an old phase wakes to see its generation gone.
  for (std::size_t i = 0; i < capacity_; ++i) {
    counters_[i].state.store(pack(generation_.load(), 0));
    counters_[i].done.fetch_add(1);
    counters_[i].done.notify_all();
  }
  for (std::thread& thread : workers_) thread.join();
}

void ThreadPool::run(std::span<const Phase> phases) {
  while (phases.size() > capacity_) {
    run(phases.first(capacity_));
    phases = phases.subspan(capacity_);
  }
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    counters_[i].done.store(0, std::memory_order_relaxed);
    counters_[i].state.store(pack(generation, static_cast<std::uint64_t>(phases[i].chunks)),
                             std::memory_order_release);
  }
  phases_.store(phases.data(), std::memory_order_relaxed);
  phase_count_.store(static_cast<std::uint32_t>(phases.size()), std::memory_order_relaxed);
  generation_.store(generation, std::memory_order_release);
  if (!workers_.empty()) generation_.notify_all();
  work(generation, 0);
}

void ThreadPool::worker_loop(int worker) {
  std::uint32_t seen = 0;
  while (true) {
    std::uint32_t now = generation_.load(std::memory_order_acquire);
    for (int spin = 0; now == seen && spin < kSpins; ++spin) {
      relax();
      now = generation_.load(std::memory_order_acquire);
    }
    if (now == seen) {
      generation_.wait(seen, std::memory_order_acquire);
      continue;
    }
    if (stop_.load()) return;
    seen = now;
    work(now, worker);
  }
}

void ThreadPool::work(std::uint32_t generation, int worker) {
  const std::uint32_t count = phase_count_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    Counter& counter = counters_[i];
    std::uint64_t state = counter.state.load(std::memory_order_acquire);
    const std::uint32_t chunks = chunks_of(state);
    while (generation_of(state) == (generation & kGenerationMask) &&
           (state & kFieldMask) < chunks) {
      if (!counter.state.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel))
        continue;
      // Owning a chunk keeps the run, and so the phases, alive.
      const Phase& phase = phases_.load(std::memory_order_relaxed)[i];
      phase.run(phase.context, static_cast<int>(state & kFieldMask), worker);
      if (counter.done.fetch_add(1, std::memory_order_acq_rel) + 1 == chunks)
        counter.done.notify_all();
      state = counter.state.load(std::memory_order_acquire);
    }
    if (generation_of(state) != (generation & kGenerationMask)) return;
    if (!await(counter, generation, chunks)) return;
  }
}

// False when the run this thread was working for is over.
bool ThreadPool::await(Counter& counter, std::uint32_t generation, std::uint32_t chunks) const {
  int spins = 0;
  while (true) {
    const std::uint32_t done = counter.done.load(std::memory_order_acquire);
    if (generation_of(counter.state.load(std::memory_order_acquire)) !=
        (generation & kGenerationMask)) {
      return false;
    }
    if (done >= chunks) return true;
    if (++spins < kSpins) {
      relax();
    } else {
      counter.done.wait(done, std::memory_order_acquire);
    }
  }
}

}  // namespace bodega
