#include "base/hash.h"

#include <gtest/gtest.h>

#include <array>

#include "base/hex.h"

namespace bodega {
namespace {

// Hashes name blocks on disk and weights in fingerprints: another library version may not move
// them.
TEST(Hash, MatchesTheReferenceValues) {
  EXPECT_EQ(to_hex(hash64("")), "2d06800538d394c2");
  EXPECT_EQ(to_hex(hash128("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(to_hex(hash64("abc")), "78af5f94892f3950");
  EXPECT_EQ(to_hex(hash128("abc")), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash, TheSeedMatters) { EXPECT_NE(hash128("abc", 1), hash128("abc", 2)); }

TEST(Hash, PiecesGiveTheValueOfTheWhole) {
  const std::string text(5000, 'x');
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  Hasher128 hasher(9);
  hasher.add(bytes.first(1)).add(bytes.subspan(1, 999)).add(bytes.subspan(1000));
  EXPECT_EQ(hasher.finish(), hash128(bytes, 9));
}

TEST(Hash, TextsKeepTheirBorders) {
  Hasher128 left;
  Hasher128 right;
  left.add(std::string_view("ab")).add(std::string_view("c"));
  right.add(std::string_view("a")).add(std::string_view("bc"));
  EXPECT_NE(left.finish(), right.finish());
}

TEST(Hex, GoesThereAndBack) {
  const std::array<std::uint8_t, 4> bytes = {0x00, 0x0F, 0xA0, 0xFF};
  EXPECT_EQ(to_hex(bytes), "000fa0ff");
  EXPECT_EQ(from_hex("000fA0fF"), std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
  EXPECT_FALSE(from_hex("0").has_value());
  EXPECT_FALSE(from_hex("0g").has_value());
  EXPECT_EQ(to_hex(std::uint64_t{1}), "0000000000000001");
}

}  // namespace
}  // namespace bodega
