#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <variant>
#include <vector>

#include "cache/transfers.h"
#include "engine/disk/block_store.h"

namespace bodega::engine {

// What the I/O thread has done.
struct SpillDone {
  cache::SpillJob job;
  bool written = false;
  double seconds = 0;
};
struct RestoreDone {
  cache::RestoreJob job;
  int good = 0;
  double seconds = 0;
};
using IoDone = std::variant<SpillDone, RestoreDone, std::vector<BlockStore::Found>>;

// The one thread that reads and writes KV blocks. Reads go before writes: somebody waits for them.
// All public members may be called from any thread.
class BlockIo {
 public:
  // `wake` is called on the I/O thread after something has ended.
  BlockIo(std::unique_ptr<BlockStore> store, std::int64_t budget_bytes, std::function<void()> wake);
  ~BlockIo();  // what has not begun is dropped
  BlockIo(const BlockIo&) = delete;
  BlockIo& operator=(const BlockIo&) = delete;

  void submit(cache::RestoreJob job);
  void submit(cache::SpillJob job);
  void remove(const Hash128& name);
  // Looks for files of other processes; the answer comes through take().
  void look();

  std::vector<IoDone> take();
  // Waits until something has ended, or for so long.
  void wait(double seconds);
  const BlockStore& store() const { return *store_; }

 private:
  struct Work {
    std::optional<cache::RestoreJob> restore;
    std::optional<cache::SpillJob> spill;
    std::optional<Hash128> remove;
    bool look = false;
  };

  void run(std::int64_t budget_bytes);
  bool next(Work& work);
  void perform(Work& work);
  std::vector<BlockStore::Found> scan();
  void finish(IoDone done);

  std::unique_ptr<BlockStore> store_;
  std::function<void()> wake_;
  std::mutex mutex_;  // guards what follows; held only to move things in and out
  std::condition_variable changed_;
  std::condition_variable ended_;
  std::deque<cache::RestoreJob> restores_;
  std::deque<cache::SpillJob> spills_;
  std::deque<Hash128> removals_;
  std::vector<IoDone> done_;
  bool look_ = false;
  bool closed_ = false;
  std::unordered_set<Hash128, Hash128Hasher> known_;  // the I/O thread's: names seen before
  std::thread thread_;
};

}  // namespace bodega::engine
