#include "engine/disk/block_io.h"

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace bodega::engine {

BlockIo::BlockIo(std::unique_ptr<BlockStore> store, std::int64_t budget_bytes,
                 std::function<void()> wake)
    : store_(std::move(store)), wake_(std::move(wake)) {
  thread_ = std::thread([this, budget_bytes] { run(budget_bytes); });
}

BlockIo::~BlockIo() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void BlockIo::submit(cache::RestoreJob job) {
  {
    std::lock_guard lock(mutex_);
    restores_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void BlockIo::submit(cache::SpillJob job) {
  {
    std::lock_guard lock(mutex_);
    spills_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void BlockIo::remove(const Hash128& name) {
  {
    std::lock_guard lock(mutex_);
    removals_.push_back(name);
  }
  changed_.notify_one();
}

void BlockIo::look() {
  {
    std::lock_guard lock(mutex_);
    look_ = true;
  }
  changed_.notify_one();
}

std::vector<IoDone> BlockIo::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void BlockIo::wait(double seconds) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !done_.empty(); });
}

void BlockIo::finish(IoDone done) {
  {
    std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
  }
  ended_.notify_all();
  wake_();
}

// Waits for work; false once closed.
bool BlockIo::next(Work& work) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] {
    return closed_ || look_ || !restores_.empty() || !spills_.empty() || !removals_.empty();
  });
  if (closed_) return false;
  const auto take = [](auto& queue, auto& into) {
    if (queue.empty()) return false;
    into = std::move(queue.front());
    queue.pop_front();
    return true;
  };
  if (take(restores_, work.restore) || take(removals_, work.remove) || take(spills_, work.spill)) {
    return true;
  }
  work.look = std::exchange(look_, false);
  return true;
}

void BlockIo::run(std::int64_t budget_bytes) {
  store_->trim_others(budget_bytes);
  for (;;) {
    Work work;
    if (!next(work)) return;
    perform(work);
  }
}

void BlockIo::perform(Work& work) {
  const Stopwatch watch;
  if (work.restore) {
    const int good = store_->read(*work.restore);
    finish(RestoreDone{std::move(*work.restore), good, watch.seconds()});
  } else if (work.spill) {
    const bool written = store_->write(*work.spill);
    if (written) known_.insert(work.spill->name);
    finish(SpillDone{std::move(*work.spill), written, watch.seconds()});
  } else if (work.remove) {
    known_.erase(*work.remove);
    store_->remove(*work.remove);
  } else if (work.look) {
    finish(scan());
  }
}

// Files that this process neither wrote nor saw before.
std::vector<BlockStore::Found> BlockIo::scan() {
  const auto known = [this](const Hash128& name) { return known_.contains(name); };
  std::vector<BlockStore::Found> found = store_->scan(known);
  for (const BlockStore::Found& file : found) known_.insert(file.name);
  return found;
}

}  // namespace bodega::engine
