#include "base/utf8.h"

#include <array>
#include <cstdint>

namespace bodega {
namespace {

// How a character that starts with `lead` has to go on: its length, and the range of its second
// byte (the rest are 80..BF). Length 0: no character starts so. Table 3-7 of the Unicode standard.
struct Shape {
  int length = 0;
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xBF;
};

constexpr Shape shape_of(std::uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2) return {0};
  if (lead < 0xE0) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

struct Piece {
  std::size_t bytes = 0;  // of the character, or of the longest start of one (at least 1)
  bool whole = false;
  bool cut = false;  // not whole, and only because the input ended
};

Piece next_piece(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const Shape shape = shape_of(at(0));
  if (shape.length == 0) return {1};
  const auto length = static_cast<std::size_t>(shape.length);
  for (std::size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {i, false, true};
    const std::uint8_t low = i == 1 ? shape.second_min : 0x80;
    const std::uint8_t high = i == 1 ? shape.second_max : 0xBF;
    if (at(i) < low || at(i) > high) return {i};
  }
  return {length, true};
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const Piece piece = next_piece(bytes.substr(done));
    if (!piece.whole) break;
    done += piece.bytes;
  }
  return done;
}

bool is_valid_utf8(std::string_view bytes) { return valid_utf8_prefix(bytes) == bytes.size(); }

bool ends_inside_character(std::string_view bytes) {
  const std::string_view rest = bytes.substr(valid_utf8_prefix(bytes));
  return !rest.empty() && next_piece(rest).cut;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t valid = valid_utf8_prefix(bytes);
    out += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    out += "\xEF\xBF\xBD";
    bytes.remove_prefix(next_piece(bytes).bytes);
  }
  return out;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  const auto c = static_cast<std::uint32_t>(code_point);
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0 | c >> 6);
    byte(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    byte(0xE0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3F));
    byte(0x80 | (c & 0x3F));
  } else {
    byte(0xF0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3F));
    byte(0x80 | (c >> 6 & 0x3F));
    byte(0x80 | (c & 0x3F));
  }
}

}  // namespace bodega
