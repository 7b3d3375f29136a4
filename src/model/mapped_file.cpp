#include "model/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/errors.h"
#include "model/names.h"

namespace bodega::model {
namespace {

constexpr std::size_t kReleaseEvery = 4 * kMiB;
// A page fault maps the pages around it as well (Linux: up to 64 KiB).
constexpr std::size_t kFaultAround = 64 * kKiB;

[[noreturn]] void fail(const std::string& file, const std::string& why) {
  throw Error(ErrorKind::kBadModelFile, file + ": " + why);
}

std::int64_t change_ns(const struct stat& status) {
#ifdef __APPLE__
  const timespec time = status.st_mtimespec;
#else
  const timespec time = status.st_mtim;
#endif
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const std::string name = printable(path.filename().string());
  // Non-blocking: opening a pipe must not wait for its writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) fail(name, std::string("cannot be opened: ") + std::strerror(errno) + ".");
  return std::shared_ptr<const MappedFile>(new MappedFile(name, file));
}

MappedFile::MappedFile(std::string name, int file) : name_(std::move(name)), file_(file) {
  struct stat status{};
  const bool regular = ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular || status.st_size <= 0) {
    ::close(file_);
    fail(name_, regular ? "is empty." : "is not a regular file.");
  }
  size_ = static_cast<std::size_t>(status.st_size);
  changed_ns_ = change_ns(status);
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_, 0);
  if (data == MAP_FAILED) {
    ::close(file_);
    fail(name_, std::string("cannot be mapped: ") + std::strerror(errno) + ".");
  }
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  ::munmap(const_cast<std::byte*>(data_), size_);
  ::close(file_);
}

void MappedFile::check_unchanged() const {
  struct stat status{};
  if (::fstat(file_, &status) != 0 || static_cast<std::size_t>(status.st_size) != size_ ||
      change_ns(status) != changed_ns_) {
    fail(name_, "was changed while it was being loaded.");
  }
}

void MappedFile::release(std::span<const std::byte> range) const {
  if (range.empty()) return;
  static const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(range.data() - data_);
  const std::size_t begin = (offset - std::min(offset, kFaultAround)) / kPage * kPage;
  const std::size_t end = std::min(offset + range.size() + kFaultAround, size_);
  // Neighbours' pages may go too: clean pages of a file come back when they are read.
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

MappedRange::MappedRange(std::shared_ptr<const MappedFile> file, std::span<const std::byte> bytes)
    : file_(std::move(file)), bytes_(bytes) {}

MappedRange::~MappedRange() { file_->release(bytes_); }

void MappedRange::note_read(std::size_t bytes) const {
  const std::size_t before = unreleased_.fetch_add(bytes, std::memory_order_relaxed);
  if (before / kReleaseEvery != (before + bytes) / kReleaseEvery) file_->release(bytes_);
}

}  // namespace bodega::model
