#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace bodega::model {

// A file mapped read-only and shared. A reader of mapped bytes dies with SIGBUS when another
// program cuts the file short meanwhile, so check_unchanged() is called before each tensor is
// handed out.
class MappedFile {
 public:
  // Throws Error(kBadModelFile) for anything but a readable regular file with at least one byte.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& name() const { return name_; }  // the file's own name, for messages
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Throws when the file's size or time of change is no longer what it was when it was mapped.
  void check_unchanged() const;
  // Tells the system that these pages need not stay in memory; reading them again is allowed.
  void release(std::span<const std::byte> range) const;

 private:
  MappedFile(std::string name, int file);

  std::string name_;
  int file_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t changed_ns_ = 0;
};

// Part of a mapped file, read once from front to back or nearly so. Its pages are given back every
// few megabytes and at the end, so that a model that is repacked never lies in memory twice.
class MappedRange {
 public:
  MappedRange(std::shared_ptr<const MappedFile> file, std::span<const std::byte> bytes);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

  const std::byte* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  // Call after reading `bytes` of it; from any thread.
  void note_read(std::size_t bytes) const;

 private:
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> bytes_;
  mutable std::atomic<std::size_t> unreleased_ = 0;
};

}  // namespace bodega::model
