#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

// XXH3: fast, stable across machines of either byte order, not meant against an attacker; whoever
// must not be fooled compares the real data too.
namespace bodega {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

std::string to_hex(const Hash128& hash);  // 32 digits

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0);
Hash128 hash128(std::span<const std::byte> bytes, std::uint64_t seed = 0);
Hash128 hash128(std::string_view text, std::uint64_t seed = 0);

// The same value piece by piece, for files and for fields of several types.
class Hasher128 {
 public:
  explicit Hasher128(std::uint64_t seed = 0);
  ~Hasher128();
  Hasher128(Hasher128&&) noexcept;
  Hasher128& operator=(Hasher128&&) noexcept;

  Hasher128& add(std::span<const std::byte> bytes);
  // Length first, so that ("ab","c") and ("a","bc") differ.
  Hasher128& add(std::string_view text);
  Hasher128& add(std::uint64_t value);
  Hash128 finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For unordered containers: the value is already well mixed.
struct Hash128Hasher {
  std::size_t operator()(const Hash128& hash) const { return static_cast<std::size_t>(hash.low); }
};

}  // namespace bodega
