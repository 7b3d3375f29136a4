#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "model/checkpoint.h"

namespace bodega::model {

// The two kinds behind Checkpoint::open.
std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path);
std::unique_ptr<Checkpoint> open_folder(const std::filesystem::path& path);

// Which tensors were asked for. Thread-safe: matrices may be read by several threads.
class UsedNames {
 public:
  void add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.insert(name);
  }
  bool contains(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return names_.contains(name);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> names_;
};

// Throws for the first of `checkpoint`'s names that is neither used nor a known leftover.
void fail_on_stray(const Checkpoint& checkpoint, const UsedNames& used, const std::string& file);

}  // namespace bodega::model
