#include "engine/disk/store_header.h"

#include <cstring>
#include <string_view>
#include <type_traits>

#include "base/hash.h"

namespace bodega::engine {
namespace {

constexpr std::string_view kMagic = "BODEGAK1";
constexpr std::uint32_t kMostBlocks = 32;
constexpr std::size_t kChecked = kHeaderBytes - sizeof(std::uint64_t);

class Writer {
 public:
  explicit Writer(HeaderPage& page) : page_(page) {}
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(page_.data() + at_, &value, sizeof(T));
    at_ += sizeof(T);
  }

 private:
  HeaderPage& page_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte, kHeaderBytes> page) : page_(page) {}
  template <typename T>
  void take(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(&value, page_.data() + at_, sizeof(T));
    at_ += sizeof(T);
  }

 private:
  std::span<const std::byte, kHeaderBytes> page_;
  std::size_t at_ = 0;
};

std::array<char, 8> magic() {
  std::array<char, 8> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), bytes.size());
  return bytes;
}

static_assert(kMostBlocks * (sizeof(cache::StoredBlock) + 8) + 64 < kChecked);

}  // namespace

HeaderPage encode_header(const StoreHeader& header) {
  HeaderPage page{};
  Writer writer(page);
  writer.put(magic());
  writer.put(header.subject);
  writer.put(header.block_bytes);
  writer.put(static_cast<std::uint64_t>(header.blocks.size()));
  for (std::size_t i = 0; i < header.blocks.size(); ++i) {
    writer.put(header.blocks[i]);
    writer.put(header.checksums[i]);
  }
  const std::uint64_t sum = hash64(std::span<const std::byte>(page).first(kChecked));
  std::memcpy(page.data() + kChecked, &sum, sizeof(sum));
  return page;
}

std::optional<StoreHeader> decode_header(std::span<const std::byte, kHeaderBytes> page) {
  std::uint64_t sum = 0;
  std::memcpy(&sum, page.data() + kChecked, sizeof(sum));
  if (sum != hash64(page.first(kChecked))) return std::nullopt;
  Reader reader(page);
  std::array<char, 8> found{};
  reader.take(found);
  StoreHeader header;
  reader.take(header.subject);
  reader.take(header.block_bytes);
  std::uint64_t count = 0;
  reader.take(count);
  if (found != magic() || count == 0 || count > kMostBlocks) return std::nullopt;
  header.blocks.resize(count);
  header.checksums.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    reader.take(header.blocks[i]);
    reader.take(header.checksums[i]);
  }
  return header;
}

}  // namespace bodega::engine
