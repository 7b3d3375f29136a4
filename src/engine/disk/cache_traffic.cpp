#include "engine/disk/cache_traffic.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace bodega::engine {
namespace {

constexpr int kWritesAtOnce = 8;
constexpr double kLookEveryS = 30;  // for files of other processes
constexpr int kMostBackOff = 8;     // doublings of a second after writes that failed
constexpr double kHangS = 2;        // without the end of any write
constexpr int kUrgentShare = 32;    // of the pool: with fewer blocks ready, writing cannot wait

}  // namespace

CacheTraffic::CacheTraffic(cache::KvCache& cache, schedule::Scheduler& scheduler,
                           cost::CostModel* prices, std::unique_ptr<BlockIo> io)
    : cache_(cache), scheduler_(scheduler), prices_(prices), io_(std::move(io)) {
  if (io_ == nullptr) return;
  look_again_s_ = monotonic_seconds() + kLookEveryS;
  io_->look();
}

void CacheTraffic::settle() {
  if (io_ == nullptr) return;
  for (IoDone& done : io_->take()) {
    std::visit([this](auto& what) { end(what); }, done);
  }
  while (const auto name = cache_.plan_delete()) io_->remove(*name);
  const double now = monotonic_seconds();
  // A disk that hangs must not keep anybody out.
  if (writing_ > 0 && now > wrote_s_ + kHangS) cache_.allow_writes(false);
  if (now < look_again_s_) return;
  look_again_s_ = now + kLookEveryS;
  io_->look();
}

void CacheTraffic::end(SpillDone& done) {
  --writing_;
  wrote_s_ = monotonic_seconds();
  const auto blocks = static_cast<int>(done.job.blocks.size());
  const std::int64_t bytes = io_->store().file_bytes(blocks);
  cache_.spilled(done.job, done.written, bytes);
  if (done.written) {
    failures_ = 0;
    if (prices_ != nullptr) prices_->observe_write(bytes, done.seconds);
  } else {
    failures_ = std::min(failures_ + 1, kMostBackOff);
    write_again_s_ = monotonic_seconds() + (1 << failures_);
  }
  cache_.allow_writes(done.written);
}

void CacheTraffic::end(RestoreDone& done) {
  --reading_;
  scheduler_.restored(done.job, done.good);
  // Not to be believed: without it the same blocks can be written anew.
  const auto good = static_cast<std::size_t>(done.good);
  if (good < done.job.parts.size()) io_->remove(done.job.parts[good].file);
  if (prices_ == nullptr || done.good == 0) return;
  prices_->observe_read(io_->store().file_bytes(done.good), done.seconds);
}

void CacheTraffic::end(std::vector<BlockStore::Found>& found) {
  for (const BlockStore::Found& file : found) cache_.found_file(file.name, file.keys, file.bytes);
}

void CacheTraffic::start(schedule::StepPlan& plan) {
  if (io_ == nullptr) return;
  for (cache::RestoreJob& job : plan.restores) {
    ++reading_;
    io_->submit(std::move(job));
  }
  plan.restores.clear();
  while (writing_ < kWritesAtOnce && may_write(plan)) {
    const int before = writing_;
    write_next(false);
    if (writing_ == before) return;
  }
}

// A step that is bound by bandwidth has none to spare; one with more rows than the ridge has.
bool CacheTraffic::may_write(const schedule::StepPlan& plan) const {
  if (monotonic_seconds() < write_again_s_) return false;
  const int ready = cache_.pool().free() + cache_.ladder().clean();
  if (prices_ == nullptr || plan.empty() || cache_.room_wanted() ||
      ready < cache_.pool().total() / kUrgentShare) {
    return true;
  }
  return plan.shape.rows > prices_->ridge_rows();
}

void CacheTraffic::write_next(bool all) {
  auto job = cache_.plan_spill(all);
  if (!job) return;
  if (writing_++ == 0) wrote_s_ = monotonic_seconds();
  io_->submit(std::move(*job));
}

void CacheTraffic::flush(double seconds) {
  if (io_ == nullptr) return;
  const Stopwatch watch;
  while (watch.seconds() < seconds && failures_ == 0) {
    while (writing_ < kWritesAtOnce) {
      const int before = writing_;
      write_next(true);
      if (writing_ == before) break;
    }
    if (writing_ == 0) return;
    io_->wait(seconds - watch.seconds());
    settle();
  }
}

}  // namespace bodega::engine
