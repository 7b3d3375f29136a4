#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bodega::engine {

// What the block store asks of a file system; tests put one in its place that fails. Every member
// throws std::system_error, and may be called from one thread at a time.
class Files {
 public:
  struct Listed {
    std::string name;
    std::int64_t bytes = 0;
    double age_s = 0;  // since it was written
  };
  struct Piece {
    std::int64_t offset = 0;
    std::span<std::byte> into;
  };

  virtual ~Files() = default;
  virtual void make_folder(const std::string& path) = 0;  // only this user may enter it
  virtual std::vector<Listed> list(const std::string& folder) = 0;
  virtual std::vector<std::string> list_folders(const std::string& folder) = 0;
  // A new file of these parts, one after the other, written past the page cache as far as the
  // system lets it.
  virtual void write(const std::string& path,
                     std::span<const std::span<const std::byte>> parts) = 0;
  // Fills every piece whole, or throws.
  virtual void read(const std::string& path, std::span<const Piece> pieces) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path) = 0;  // nothing happens when it is not there
  virtual std::int64_t free_bytes(const std::string& folder) = 0;
};

std::shared_ptr<Files> real_files();

}  // namespace bodega::engine
