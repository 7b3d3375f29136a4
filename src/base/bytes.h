#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bodega {

inline constexpr std::uint64_t kKiB = std::uint64_t{1} << 10;
inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// "512", "64K", "64KiB", "1.5 GiB", "2TB": K, M, G, T are powers of 1024 with or without "iB" or
// "B", any case. Throws Error(kConfig) for anything else, for negatives and beyond 2^63.
std::uint64_t parse_bytes(std::string_view text);

// "0 B", "640 B", "1.5 KiB", "12.0 MiB": one decimal from KiB on.
std::string format_bytes(std::uint64_t bytes);

}  // namespace bodega
