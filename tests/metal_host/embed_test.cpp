// embed of every format against the table's numbers.
#include <gtest/gtest.h>

#include "ops/metal/packed_matrix.h"
#include "ops/metal/params.h"
#include "shim/buffer.h"
#include "unit/ops/random_weights.h"

namespace metal_host::msl {

using namespace bodega::ops::metal;  // the parameters

#define BODEGA_VARIANT embed4
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 64
#define BODEGA_SCALE 0
#include "embed_variant.h"

#define BODEGA_VARIANT embed4_wide
#define BODEGA_BITS 4
#define BODEGA_CODES 0
#define BODEGA_GROUP 128
#define BODEGA_SCALE 2
#include "embed_variant.h"

#define BODEGA_VARIANT embed8
#define BODEGA_BITS 8
#define BODEGA_CODES 0
#define BODEGA_GROUP 32
#define BODEGA_SCALE 1
#include "embed_variant.h"

#define BODEGA_VARIANT embed_half
#define BODEGA_BITS 16
#define BODEGA_CODES 0
#define BODEGA_GROUP 32
#define BODEGA_SCALE 0
#include "embed_variant.h"

#define BODEGA_VARIANT embed_bfloat
#define BODEGA_BITS 16
#define BODEGA_CODES 0
#define BODEGA_GROUP 32
#define BODEGA_SCALE 1
#include "embed_variant.h"

#define BODEGA_VARIANT embed_mxfp4
#define BODEGA_BITS 4
#define BODEGA_CODES 1
#define BODEGA_GROUP 32
#define BODEGA_SCALE 1
#include "embed_variant.h"

}  // namespace metal_host::msl

namespace metal_host {
namespace {

using bodega::ops::FloatType;
using bodega::ops::WeightFormat;

template <class K>
class Embed : public testing::Test {};
using Formats =
    testing::Types<msl::embed4::Kernels, msl::embed4_wide::Kernels, msl::embed8::Kernels,
                   msl::embed_half::Kernels, msl::embed_bfloat::Kernels, msl::embed_mxfp4::Kernels>;
TYPED_TEST_SUITE(Embed, Formats);

TYPED_TEST(Embed, GivesTheRowsOfTheTable) {
  constexpr int kRows = 75;
  constexpr int kCols = 384;
  const FloatType types[] = {FloatType::kF16, FloatType::kBF16, FloatType::kF32};
  WeightFormat format{WeightFormat::Kind::kAffine, TypeParam::kBits, TypeParam::kGroup,
                      types[TypeParam::kScale]};
  if (TypeParam::kCodes == 1) format.kind = WeightFormat::Kind::kMxfp4;
  if (TypeParam::kBits == 16) format = {WeightFormat::Kind::kDense, 0, 0, types[TypeParam::kScale]};
  const bodega::ops::RandomWeights source(format, {kRows, kCols}, 9);
  const auto layout = bodega::ops::metal::layout_for(source, false);
  Buffer<msl::uchar> table("table", layout.bytes());
  for (int b = 0; b < layout.blocks(); ++b) {
    pack_block(source, layout, b, table.values().data() + layout.block_bytes() * b);
  }
  const Buffer<int> tokens("tokens", {74, 0, 31, 32, 8, 8});
  Buffer<float> out("out", tokens.values().size() * kCols);
  TypeParam::run({kCols, 3.0F}, table, tokens, out);
  const std::vector<float> want = source.all();
  for (std::size_t i = 0; i < tokens.values().size(); ++i) {
    for (int k = 0; k < kCols; ++k) {
      ASSERT_FLOAT_EQ(3.0F * want[tokens.values()[i] * kCols + k], out.values()[i * kCols + k]);
    }
  }
}

}  // namespace
}  // namespace metal_host
