#include "engine/disk/measure_disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/clock.h"

namespace bodega::engine {
namespace {

constexpr std::size_t kChunk = std::size_t{2} << 20;
constexpr int kChunks = 8;
constexpr std::size_t kPage = 4096;
constexpr int kPages = 15;

// Past the page cache where the file system can, else as it comes.
int open_direct(const std::string& path, int flags) {
#ifdef O_DIRECT
  const int direct = ::open(path.c_str(), flags | O_CLOEXEC | O_DIRECT, 0600);
  if (direct >= 0) return direct;
#endif
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
#ifdef F_NOCACHE
  if (fd >= 0) ::fcntl(fd, F_NOCACHE, 1);
#endif
  return fd;
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

class Trial {
 public:
  explicit Trial(const std::string& path) : path_(path) {
    buffer_.reset(static_cast<char*>(std::aligned_alloc(kPage, kChunk)));
    std::uint64_t value = 88172645463325252ULL;  // not compressible
    for (std::size_t i = 0; i < kChunk; i += sizeof(value)) {
      value ^= value << 13;
      value ^= value >> 7;
      value ^= value << 17;
      std::copy_n(reinterpret_cast<const char*>(&value), sizeof(value), buffer_.get() + i);
    }
  }
  ~Trial() {
    close_file();
    ::unlink(path_.c_str());
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  std::optional<DiskSpeed> run() {
    DiskSpeed speed;
    constexpr double kBytes = static_cast<double>(kChunk) * kChunks;
    if (!open(O_CREAT | O_TRUNC | O_WRONLY)) return std::nullopt;
    const Stopwatch writing;
    for (int i = 0; i < kChunks; ++i) {
      if (::write(fd_, buffer_.get(), kChunk) != static_cast<ssize_t>(kChunk)) return std::nullopt;
    }
    if (::fsync(fd_) != 0) return std::nullopt;
    speed.write = kBytes / writing.seconds();
    forget_pages();
    if (!open(O_RDONLY)) return std::nullopt;
    std::vector<double> pages;
    for (int i = 0; i < kPages; ++i) {
      const off_t offset = static_cast<off_t>((i * 7919 % 4000) * kPage);
      const Stopwatch one;
      if (::pread(fd_, buffer_.get(), kPage, offset) != static_cast<ssize_t>(kPage))
        return std::nullopt;
      pages.push_back(one.seconds());
    }
    std::nth_element(pages.begin(), pages.begin() + kPages / 2, pages.end());
    speed.latency_s = pages[kPages / 2];
    forget_pages();
    const Stopwatch reading;
    for (int i = 0; i < kChunks; ++i) {
      if (::pread(fd_, buffer_.get(), kChunk, static_cast<off_t>(i * kChunk)) !=
          static_cast<ssize_t>(kChunk)) {
        return std::nullopt;
      }
    }
    speed.read = kBytes / reading.seconds();
    return speed;
  }

 private:
  bool open(int flags) {
    close_file();
    fd_ = open_direct(path_, flags);
    return fd_ >= 0;
  }
  void close_file() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void forget_pages() const {
#ifdef POSIX_FADV_DONTNEED
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
#endif
  }

  std::string path_;
  std::unique_ptr<char, Free> buffer_;
  int fd_ = -1;
};

}  // namespace

std::optional<DiskSpeed> measure_disk(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return std::nullopt;
  return Trial(folder + "/speed." + std::to_string(::getpid()) + ".tmp").run();
}

}  // namespace bodega::engine
