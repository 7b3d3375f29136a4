#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/disk/files.h"

namespace bodega::engine {

// A file system in memory on which everything can go wrong. May be set from a test's thread while
// the I/O thread uses it.
class FaultyFiles final : public Files {
 public:
  enum class Fault {
    kNone,
    kFull,      // writes fail half way, the file is left behind
    kNoRename,  // a crash between write and rename
    kShort,     // reads end early
    kDamaged,   // one bit of what is read is wrong
    kVanished,  // the folder is gone
    kSlow,      // everything takes its time
  };

  void set(Fault fault) {
    std::lock_guard lock(mutex_);
    fault_ = fault;
    if (fault == Fault::kVanished) files_.clear();
  }
  std::size_t count(const std::string& suffix) {
    std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count_if(
        files_.begin(), files_.end(), [&](const auto& f) { return f.first.ends_with(suffix); }));
  }
  // Changes the bytes of every file that is there.
  template <typename Change>
  void change_all(Change change) {
    std::lock_guard lock(mutex_);
    for (auto& [name, bytes] : files_) change(bytes);
  }

  void make_folder(const std::string&) override { enter(); }
  std::vector<Listed> list(const std::string& folder) override {
    const std::lock_guard lock = enter();
    std::vector<Listed> listed;
    for (const auto& [name, bytes] : files_) {
      if (!name.starts_with(folder + '/')) continue;
      listed.push_back(
          {name.substr(folder.size() + 1), static_cast<std::int64_t>(bytes.size()), age_s_});
    }
    return listed;
  }
  std::vector<std::string> list_folders(const std::string& folder) override {
    const std::lock_guard lock = enter();
    std::vector<std::string> folders;
    for (const auto& [name, bytes] : files_) {
      const std::string rest = name.substr(folder.size() + 1);
      const std::string first = rest.substr(0, rest.find('/'));
      if (folders.empty() || folders.back() != first) folders.push_back(first);
    }
    return folders;
  }
  void write(const std::string& path, std::span<const std::span<const std::byte>> parts) override {
    const std::lock_guard lock = enter();
    std::vector<std::byte>& bytes = files_[path];
    bytes.clear();
    for (const auto& part : parts) {
      bytes.insert(bytes.end(), part.begin(), part.end());
      if (fault_ == Fault::kFull) fail(ENOSPC);
    }
  }
  void read(const std::string& path, std::span<const Piece> pieces) override {
    const std::lock_guard lock = enter();
    const auto file = files_.find(path);
    if (file == files_.end()) fail(ENOENT);
    for (const Piece& piece : pieces) {
      const auto offset = static_cast<std::size_t>(piece.offset);
      const bool beyond = offset + piece.into.size() > file->second.size();
      if (beyond || fault_ == Fault::kShort) fail(EIO);
      std::copy_n(file->second.begin() + static_cast<std::ptrdiff_t>(offset), piece.into.size(),
                  piece.into.begin());
      if (fault_ == Fault::kDamaged) piece.into[piece.into.size() / 2] ^= std::byte{4};
    }
  }
  void rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock = enter();
    if (fault_ == Fault::kNoRename) fail(EIO);
    auto node = files_.extract(from);
    if (node.empty()) fail(ENOENT);
    files_[to] = std::move(node.mapped());
  }
  void remove(const std::string& path) override {
    const std::lock_guard lock = enter();
    if (fault_ != Fault::kNoRename && fault_ != Fault::kFull) files_.erase(path);
  }
  std::int64_t free_bytes(const std::string&) override { return 1'000'000'000; }
  void set_age(double seconds) { age_s_ = seconds; }

 private:
  [[noreturn]] static void fail(int code) {
    throw std::system_error(code, std::generic_category());
  }
  std::lock_guard<std::mutex> enter() {
    if (fault_ == Fault::kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (fault_ == Fault::kVanished) fail(ENOENT);
    return std::lock_guard(mutex_);
  }

  std::mutex mutex_;
  std::map<std::string, std::vector<std::byte>> files_;
  std::atomic<Fault> fault_{Fault::kNone};
  std::atomic<double> age_s_{1};
};

}  // namespace bodega::engine
