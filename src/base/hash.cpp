#include "base/hash.h"

#include <xxhash.h>

#include <array>
#include <new>

#include "base/hex.h"

namespace bodega {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

Hash128 from_xxh(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

}  // namespace

std::string to_hex(const Hash128& hash) { return to_hex(hash.high) + to_hex(hash.low); }

std::uint64_t hash64(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t hash64(std::string_view text, std::uint64_t seed) {
  return hash64(bytes_of(text), seed);
}

Hash128 hash128(std::span<const std::byte> bytes, std::uint64_t seed) {
  return from_xxh(XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed));
}

Hash128 hash128(std::string_view text, std::uint64_t seed) { return hash128(bytes_of(text), seed); }

struct Hasher128::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    if (xxh == nullptr) throw std::bad_alloc();
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Hasher128::Hasher128(std::uint64_t seed) : state_(std::make_unique<State>()) {
  XXH3_128bits_reset_withSeed(state_->xxh, seed);
}
Hasher128::~Hasher128() = default;
Hasher128::Hasher128(Hasher128&&) noexcept = default;
Hasher128& Hasher128::operator=(Hasher128&&) noexcept = default;

Hasher128& Hasher128::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher128& Hasher128::add(std::string_view text) { return add(text.size()).add(bytes_of(text)); }

Hasher128& Hasher128::add(std::uint64_t value) {
  std::array<std::byte, 8> bytes{};  // little-endian on every machine
  for (std::byte& byte : bytes) {
    byte = static_cast<std::byte>(value & 0xFF);
    value >>= 8;
  }
  return add(std::span<const std::byte>(bytes));
}

Hash128 Hasher128::finish() const { return from_xxh(XXH3_128bits_digest(state_->xxh)); }

}  // namespace bodega
