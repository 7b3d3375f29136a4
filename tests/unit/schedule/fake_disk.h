#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "harness.h"

namespace bodega::schedule {

// The SSD of a Harness: transfers take a random number of steps, and some find their file gone,
// damaged, or the disk full. What a block held when its transfer was planned is what it must hold
// when it ends.
class FakeDisk {
 public:
  static constexpr std::int64_t kBlockBytes = 100;

  FakeDisk(Harness& harness, std::uint32_t seed) : h_(harness), random_(seed) {}

  void start(std::vector<cache::RestoreJob>& jobs) {
    for (cache::RestoreJob& job : jobs) reads_.push_back(std::move(job));
    jobs.clear();
  }

  // A step's worth of time: some transfers end, new ones are planned.
  void advance() {
    if (!reads_.empty() && random_() % 3 == 0) end_read(random_() % reads_.size());
    if (!writes_.empty() && random_() % 3 == 0) end_write(random_() % writes_.size());
    if (writes_.size() < 2) {
      if (auto job = h_.cache.plan_spill(random_() % 8 == 0)) begin_write(std::move(*job));
    }
    while (const auto name = h_.cache.plan_delete()) files_.erase({name->high, name->low});
    if (!files_.empty() && random_() % 200 == 0) files_.erase(files_.begin());  // somebody's broom
  }
  void finish() {
    while (!reads_.empty()) end_read(0);
    while (!writes_.empty()) end_write(0);
  }

  int good() const { return good_; }
  int bad() const { return bad_; }
  int written() const { return written_; }
  bool reading() const { return !reads_.empty(); }

 private:
  using Content = std::array<std::uint64_t, core::kBlockTokens>;
  using Name = std::pair<std::uint64_t, std::uint64_t>;
  struct Write {
    cache::SpillJob job;
    std::vector<Content> contents;
  };

  Content content(cache::BlockId block) {
    Content content;
    std::copy_n(h_.block(block), core::kBlockTokens, content.begin());
    return content;
  }

  void begin_write(cache::SpillJob&& job) {
    Write write{std::move(job), {}};
    for (const cache::BlockId block : write.job.blocks) write.contents.push_back(content(block));
    writes_.push_back(std::move(write));
  }
  void end_write(std::size_t index) {
    const Write write = std::move(writes_[index]);
    writes_.erase(writes_.begin() + static_cast<std::ptrdiff_t>(index));
    for (std::size_t i = 0; i < write.contents.size(); ++i) {
      ASSERT_EQ(write.contents[i], content(write.job.blocks[i])) << "changed while it was written";
    }
    const bool full = random_() % 10 == 0;
    const auto bytes = kBlockBytes * static_cast<std::int64_t>(write.contents.size());
    h_.cache.spilled(write.job, !full, bytes);
    if (full) return;
    files_[{write.job.name.high, write.job.name.low}] = write.contents;
    written_ += static_cast<int>(write.contents.size());
  }

  void end_read(std::size_t index) {
    const cache::RestoreJob job = std::move(reads_[index]);
    reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(index));
    int good = 0;
    for (const cache::RestoreJob::Part& part : job.parts) {
      const auto file = files_.find({part.file.high, part.file.low});
      if (file == files_.end() || random_() % 30 == 0) break;
      const Content& stored = file->second.at(static_cast<std::size_t>(part.slot.index));
      std::copy(stored.begin(), stored.end(), h_.block(part.block));
      ++good;
    }
    good_ += good;
    bad_ += good < static_cast<int>(job.parts.size()) ? 1 : 0;
    // A short read leaves rubbish behind.
    for (std::size_t i = static_cast<std::size_t>(good); i < job.parts.size(); ++i) {
      std::fill_n(h_.block(job.parts[i].block), core::kBlockTokens, 0xBAD);
    }
    h_.scheduler.restored(job, good);
  }

  Harness& h_;
  std::mt19937 random_;
  std::map<Name, std::vector<Content>> files_;
  std::vector<cache::RestoreJob> reads_;
  std::vector<Write> writes_;
  int good_ = 0;
  int bad_ = 0;
  int written_ = 0;
};

}  // namespace bodega::schedule
