#include "ops/weight_source.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/errors.h"

namespace bodega::ops {
namespace {

using Kind = WeightFormat::Kind;

constexpr int kCols = 64;
constexpr WeightFormat kFour{.kind = Kind::kAffine, .bits = 4, .group_size = 32};

// Row r has the codes (r + column) % 16, scales r + 1 + group and biases -r.
class Pattern : public WeightSource {
 public:
  explicit Pattern(int rows, int first = 0) : WeightSource(kFour, rows, kCols), first_(first) {}

  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    for (int i = 0; i < count; ++i) {
      const int number = first_ + row + i;
      for (int col = 0; col < kCols; ++col) {
        codes[i * kCols + col] = static_cast<std::uint8_t>((number + col) % 16);
      }
      for (int group = 0; group < 2; ++group) {
        scales[i * 2 + group] = static_cast<float>(number + 1 + group);
        biases[i * 2 + group] = static_cast<float>(-number);
      }
    }
  }

 private:
  int first_;
};

struct Rows {
  explicit Rows(int count) : codes(count * kCols), scales(count * 2), biases(count * 2) {}
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  std::vector<float> biases;
  bool operator==(const Rows&) const = default;
};

Rows read(const WeightSource& source, int row, int count) {
  Rows rows(count);
  source.read_codes(row, count, rows.codes.data(), rows.scales.data(), rows.biases.data());
  return rows;
}

TEST(WeightSource, DequantizesCodes) {
  const Pattern source(4);
  std::vector<float> values(2 * kCols);
  source.read_values(2, 2, values.data());
  EXPECT_EQ(values[0], 2.0F * 3.0F - 2.0F);
  EXPECT_EQ(values[32], static_cast<float>((2 + 32) % 16) * 4.0F - 2.0F);
  EXPECT_EQ(values[kCols + 1], 4.0F * 4.0F - 3.0F);
}

TEST(WeightSource, RowsPutTogetherReadAsOneMatrix) {
  const Pattern whole(11);
  const auto joined = concat_rows({std::make_shared<Pattern>(5), std::make_shared<Pattern>(2, 5),
                                   std::make_shared<Pattern>(4, 7)});
  EXPECT_EQ(joined->rows(), 11);
  for (int row = 0; row < 11; ++row) {
    for (int count = 0; count <= 11 - row; ++count) {
      EXPECT_EQ(read(*joined, row, count), read(whole, row, count)) << row << " " << count;
    }
  }
  std::vector<float> values(3 * kCols), wanted(3 * kCols);
  joined->read_values(4, 3, values.data());
  whole.read_values(4, 3, wanted.data());
  EXPECT_EQ(values, wanted);
}

TEST(WeightSource, RowsComeInTheOrderAskedFor) {
  const auto source = std::make_shared<Pattern>(6);
  const auto mixed = reorder_rows(source, {3, 4, 5, 0, 2, 2});
  const Rows got = read(*mixed, 1, 4);
  const std::vector<int> order = {4, 5, 0, 2};
  for (int i = 0; i < 4; ++i) {
    const Rows wanted = read(*source, order[i], 1);
    EXPECT_TRUE(
        std::equal(wanted.codes.begin(), wanted.codes.end(), got.codes.begin() + i * kCols));
    EXPECT_EQ(got.scales[2 * i], wanted.scales[0]);
    EXPECT_EQ(got.biases[2 * i + 1], wanted.biases[1]);
  }
}

TEST(WeightSource, RefusesRowsThatDoNotExistAndUnlikeParts) {
  const auto source = std::make_shared<Pattern>(4);
  Rows rows(8);
  const auto joined = concat_rows({source, source});
  EXPECT_THROW(read(*joined, 7, 2), Error);
  EXPECT_THROW(read(*joined, -1, 1), Error);
  EXPECT_THROW(reorder_rows(source, {4}), Error);
  EXPECT_THROW(reorder_rows(source, {-1}), Error);
  EXPECT_THROW(concat_rows({}), Error);
  class Other : public WeightSource {
   public:
    Other() : WeightSource({.kind = Kind::kDense, .type = FloatType::kF16}, 4, kCols) {}
  };
  EXPECT_THROW(concat_rows({source, std::make_shared<Other>()}), Error);
  EXPECT_THROW(Other().read_values(0, 1, nullptr), Error);
  EXPECT_THROW(Other().read_codes(0, 1, nullptr, nullptr, nullptr), Error);
}

TEST(WeightFormat, NamesAndSizes) {
  EXPECT_EQ(kFour.name(), "affine 4-bit g32");
  EXPECT_EQ(WeightFormat{.type = FloatType::kBF16}.name(), "bf16");
  EXPECT_EQ(kFour.bytes(2, 64), 2 * 64 / 2 + 2 * 2 * 8U);
  EXPECT_EQ((WeightFormat{.kind = Kind::kMxfp8, .bits = 8, .group_size = 32}.bytes(2, 64)), 132U);
  EXPECT_EQ((WeightFormat{.type = FloatType::kF16}.bytes(3, 5)), 30U);
}

// The corners of OCP FP4 E2M1 and FP8 E4M3.
TEST(WeightFormat, CodesOfTheFpModes) {
  const float* four = code_values(Kind::kMxfp4);
  EXPECT_EQ(four[1], 0.5F);
  EXPECT_EQ(four[7], 6.0F);
  EXPECT_EQ(four[15], -6.0F);
  const float* eight = code_values(Kind::kMxfp8);
  EXPECT_EQ(eight[0x01], 0x1p-9F);
  EXPECT_EQ(eight[0x08], 0x1p-6F);
  EXPECT_EQ(eight[0x38], 1.0F);
  EXPECT_EQ(eight[0x7E], 448.0F);
  EXPECT_EQ(eight[0xFE], -448.0F);
  EXPECT_TRUE(std::isnan(eight[0x7F]));
  EXPECT_EQ(code_values(Kind::kAffine), nullptr);
}

}  // namespace
}  // namespace bodega::ops
