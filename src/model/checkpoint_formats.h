#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "model/checkpoint.h"
#include "model/mapped_file.h"

namespace bodega::model {

// The two kinds behind Checkpoint::open.
std::unique_ptr<Checkpoint> open_gguf(const std::filesystem::path& path);
std::unique_ptr<Checkpoint> open_folder(const std::filesystem::path& path);

// Names of a folder's entries, sorted.
std::vector<std::string> list_folder(const std::filesystem::path& folder);

// A file of a model's folder; null where there is none. A link may lead within the folder or, where
// it is a snapshot of the Hugging Face cache, to the same repository's blobs; anywhere else is
// refused.
std::shared_ptr<const MappedFile> open_in_folder(const std::filesystem::path& folder,
                                                 const std::string& name);

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
