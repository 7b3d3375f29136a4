#include "engine/disk/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

namespace bodega::engine {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (fd_ < 0) fail("open");
#ifdef F_NOCACHE
    ::fcntl(fd_, F_NOCACHE, 1);
#endif
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

  // The pages are of no use: their blocks are in the pool, or no longer wanted.
  void forget_pages() const {
#ifdef POSIX_FADV_DONTNEED
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
#endif
  }

 private:
  int fd_;
};

class RealFiles final : public Files {
 public:
  void make_folder(const std::string& path) override {
    fs::create_directories(path);
    fs::permissions(path, fs::perms::owner_all);
  }

  std::vector<Listed> list(const std::string& folder) override {
    const auto now = fs::file_time_type::clock::now();
    std::vector<Listed> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      std::error_code gone;  // another process may delete files meanwhile
      const auto bytes = entry.file_size(gone);
      if (gone) continue;
      const auto written = entry.last_write_time(gone);
      if (gone) continue;
      files.push_back({entry.path().filename().string(), static_cast<std::int64_t>(bytes),
                       std::chrono::duration<double>(now - written).count()});
    }
    return files;
  }

  std::vector<std::string> list_folders(const std::string& folder) override {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
    }
    return names;
  }

  void write(const std::string& path, std::span<const std::span<const std::byte>> parts) override {
    const Descriptor file(path, O_CREAT | O_TRUNC | O_WRONLY);
    std::vector<iovec> vectors;
    for (const auto& part : parts) {
      vectors.push_back({const_cast<std::byte*>(part.data()), part.size()});
    }
    std::size_t next = 0;
    while (next < vectors.size()) {
      const ssize_t done =
          ::writev(file.get(), &vectors[next], static_cast<int>(vectors.size() - next));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail("write");
      next = skip(vectors, next, static_cast<std::size_t>(done));
    }
    file.forget_pages();
  }

  void read(const std::string& path, std::span<const Piece> pieces) override {
    const Descriptor file(path, O_RDONLY);
    for (const Piece& piece : pieces) read_piece(file, piece);
    file.forget_pages();
  }

  void rename(const std::string& from, const std::string& to) override { fs::rename(from, to); }
  void remove(const std::string& path) override { fs::remove(path); }
  std::int64_t free_bytes(const std::string& folder) override {
    return static_cast<std::int64_t>(fs::space(folder).available);
  }

 private:
  // What a short write has left to do.
  static std::size_t skip(std::vector<iovec>& vectors, std::size_t next, std::size_t done) {
    while (next < vectors.size() && done >= vectors[next].iov_len) done -= vectors[next++].iov_len;
    if (next < vectors.size()) {
      vectors[next].iov_base = static_cast<char*>(vectors[next].iov_base) + done;
      vectors[next].iov_len -= done;
    }
    return next;
  }

  static void read_piece(const Descriptor& file, const Piece& piece) {
    std::size_t have = 0;
    while (have < piece.into.size()) {
      const ssize_t done = ::pread(file.get(), piece.into.data() + have, piece.into.size() - have,
                                   piece.offset + static_cast<off_t>(have));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail("read");
      if (done == 0) {
        errno = EIO;
        fail("the file ends early");
      }
      have += static_cast<std::size_t>(done);
    }
  }
};

}  // namespace

std::shared_ptr<Files> real_files() { return std::make_shared<RealFiles>(); }

}  // namespace bodega::engine
