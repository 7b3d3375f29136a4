#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bodega {

std::string to_hex(std::span<const std::uint8_t> bytes);  // lower case
std::string to_hex(std::uint64_t value);                  // 16 digits

// Nothing when the length is odd or a digit is not hexadecimal.
std::optional<std::vector<std::uint8_t>> from_hex(std::string_view text);

}  // namespace bodega
