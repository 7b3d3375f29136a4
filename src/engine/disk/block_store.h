#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "cache/transfers.h"
#include "engine/disk/files.h"

namespace bodega::engine {

inline constexpr int kMostBlocksAFile = 32;

// The files of the SSD rung: <root>/<subject>/<name>.kv, each some KV blocks that were written
// together. A file is a page with a header, then the blocks as they lie in the pool:
//   "BODEGAK1", subject, bytes of a block, count, per block (key, parent, tokens, checksum), and
//   the checksum of the page. Checksums are XXH3-64.
// It is written aside and renamed, so a crash leaves a whole file or none; whatever is not as
// expected is a miss. Content-addressed: two processes that write the same blocks write the same
// file. Nothing here throws; what fails is logged once in a while and answered with less.
class BlockStore {
 public:
  using Memory = std::function<std::span<std::byte>(cache::BlockId)>;
  struct Config {
    std::string root;
    std::string subject;  // model, kernels, build, layout: whatever other KV would come from
    std::int64_t block_bytes = 0;
  };
  struct Found {
    Hash128 name;
    std::vector<Hash128> keys;
    std::int64_t bytes = 0;
  };

  // `memory`: where a block of the pool lies.
  BlockStore(Config config, std::shared_ptr<Files> files, Memory memory);

  bool write(const cache::SpillJob& job);
  int read(const cache::RestoreJob& job);  // leading blocks that are there and right
  void remove(const Hash128& name);
  // What is there, without the names that `known` knows; sweeps up what crashes left behind.
  std::vector<Found> scan(const std::function<bool(const Hash128&)>& known);
  // Deletes files of other subjects (other models, older builds), the oldest first, until all
  // together keep within the budget.
  void trim_others(std::int64_t budget_bytes);

  std::int64_t file_bytes(int blocks) const;

 private:
  std::string path(const Hash128& name) const;
  void complain(const char* message, const std::exception& error);
  int read_file(std::span<const cache::RestoreJob::Part> parts);

  Config config_;
  std::shared_ptr<Files> files_;
  Memory memory_;
  Hash128 subject_;
  std::string folder_;
  double quiet_until_s_ = 0;
};

}  // namespace bodega::engine
