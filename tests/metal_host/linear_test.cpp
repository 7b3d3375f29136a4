// prepare_rows and quant_linear of every variant against sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "linear_variants.h"
#include "ops/metal/packed_matrix.h"
#include "ops/metal/step_tables.h"
#include "unit/ops/random_weights.h"

namespace metal_host {
namespace {

using bodega::ops::FloatType;
using bodega::ops::random_floats;
using bodega::ops::RandomWeights;
using bodega::ops::WeightFormat;
using bodega::ops::metal::interleave_of;
using bodega::ops::metal::PackedLayout;
using msl::LinearParams;
using msl::PrepareParams;

constexpr int kResidual = 1;
constexpr int kSwiGlu = 2;
constexpr int kGeGlu = 3;
constexpr int kLogits = 4;

struct Shape {
  int cols;
  int outputs;  // rows of the matrix
};

// Packs a random matrix and multiplies with it.
template <class K>
struct Rig {
  using Input = typename K::Input;
  static constexpr bool kGlu = K::kEpilogue == kSwiGlu || K::kEpilogue == kGeGlu;

  static WeightFormat format() {
    const FloatType types[] = {FloatType::kF16, FloatType::kBF16, FloatType::kF32};
    if (K::kBits == 16) return {WeightFormat::Kind::kDense, 0, 0, types[K::kScale]};
    if (K::kCodes == 1) {
      const auto kind = K::kBits == 4 ? WeightFormat::Kind::kMxfp4 : WeightFormat::Kind::kMxfp8;
      return {kind, K::kBits, K::kGroup, FloatType::kF32};
    }
    return {WeightFormat::Kind::kAffine, K::kBits, K::kGroup, types[K::kScale]};
  }

  // A matrix and what multiplies with it.
  struct Packed {
    explicit Packed(Shape shape)
        : shape(shape),
          source(format(), {shape.outputs, shape.cols}, 7),
          layout(bodega::ops::metal::layout_for(source, kGlu)),
          weights("weights", layout.bytes()),
          norm("norm", random_floats(shape.cols, 2)),
          bias("bias", random_floats(shape.outputs, 4)) {
      for (int b = 0; b < layout.blocks(); ++b) {
        pack_block(source, layout, b, weights.values().data() + layout.block_bytes() * b);
      }
    }
    int written() const { return kGlu ? shape.outputs / 2 : shape.outputs; }

    Shape shape;
    RandomWeights source;
    PackedLayout layout;
    Buffer<msl::uchar> weights;
    Buffer<float> norm;
    Buffer<float> bias;
  };

  struct Result {
    std::vector<float> prepared;  // [rows, cols], as the product sees it
    std::vector<float> y;         // [rows, stride]
    int stride;
  };

  // Row i of the result comes from row index[i] of x.
  static Result run(const Packed& setup, const std::vector<float>& x, const std::vector<int>& index,
                    bool norm = true) {
    const int rows = static_cast<int>(index.size());
    const int cols = setup.shape.cols;
    const int interleave = interleave_of(rows);
    const int padded = (rows + interleave - 1) / interleave * interleave;
    const int groups = cols / K::kGroup;
    const int stride = setup.written() + 7;
    const Buffer<float> in("x", x);
    const Buffer<int> indices("index", index);
    Buffer<Input> prepared("prepared", static_cast<std::size_t>(padded) * cols);
    Buffer<float> sums("sums", static_cast<std::size_t>(padded) * groups);
    Buffer<float> out("out", std::vector<float>(static_cast<std::size_t>(rows) * stride, 0.5F));
    const msl::LinearBuffers<Input> buffers{&in,   &indices,       &setup.norm, &prepared,
                                            &sums, &setup.weights, &setup.bias, &out};
    K::prepare(PrepareParams{rows, cols, interleave, 1, norm ? 1 : 0, 1e-5F, 0.25F}, buffers);
    const LinearParams p{rows, cols, interleave, setup.written(), stride, 3, 1, 0.5F, 20.0F};
    K::multiply(p, setup.layout.blocks(), buffers);
    Result result{{}, out.values(), stride};
    for (int r = 0; r < rows; ++r) {
      for (int k = 0; k < cols; ++k) {
        const std::size_t block = static_cast<std::size_t>(r / interleave) * cols * interleave;
        result.prepared.push_back(
            static_cast<float>(prepared.values()[block + k * interleave + r % interleave]));
      }
    }
    return result;
  }

  static double finish(double y, double up) {
    if (K::kEpilogue == kResidual) return 0.5 + y;
    if (K::kEpilogue == kSwiGlu) return y / (1 + std::exp(-y)) * up;
    if (K::kEpilogue == kGeGlu) {
      return 0.5 * y * (1 + std::tanh(0.7978845608028654 * (y + 0.044715 * y * y * y))) * up;
    }
    return K::kEpilogue == kLogits ? 20 * std::tanh(y * 0.5 / 20) : y;
  }
};

template <class K>
class Linear : public testing::Test, public Rig<K> {};

using namespace msl;
using Variants =
    testing::Types<f4x1::Kernels, f4x2::Kernels, f4x4::Kernels, residual4::Kernels,
                   swiglu4::Kernels, geglu4::Kernels, logits8::Kernels, bfloat8::Kernels,
                   residual8::Kernels, wide4::Kernels, wide8::Kernels, dense_half::Kernels,
                   dense_bfloat::Kernels, dense_wide::Kernels, mxfp4::Kernels, mxfp8::Kernels>;
TYPED_TEST_SUITE(Linear, Variants);

TYPED_TEST(Linear, PackingLosesNothing) {
  const typename TestFixture::Packed setup({128 * 3, 70});
  const std::vector<float> want = setup.source.all();
  std::vector<float> row(setup.shape.cols);
  for (int r = 0; r < setup.shape.outputs; ++r) {
    read_packed_row(setup.layout, setup.weights.values().data(), r, row.data());
    for (std::size_t k = 0; k < row.size(); ++k) ASSERT_EQ(want[r * row.size() + k], row[k]) << r;
  }
}

TYPED_TEST(Linear, PreparedRowsAreTheNormalisedOnes) {
  const typename TestFixture::Packed setup({384, 32});
  const std::vector<float> x = random_floats(9 * 384, 3, 2.0F);
  const std::vector<int> index{4, 0, 8, 2, 2};
  for (const bool norm : {true, false}) {
    const auto result = TestFixture::run(setup, x, index, norm);
    for (std::size_t r = 0; r < index.size(); ++r) {
      const float* in = x.data() + index[r] * 384;
      double squares = 0;
      for (int k = 0; k < 384; ++k) squares += double{in[k]} * in[k];
      for (int k = 0; k < 384; ++k) {
        double want = in[k];
        if (norm) want *= (setup.norm.values()[k] + 0.25) / std::sqrt(squares / 384 + 1e-5);
        const double ulp = sizeof(typename TestFixture::Input) == 2 ? 5e-4 : 1e-6;
        ASSERT_NEAR(want, result.prepared[r * 384 + k], ulp * std::fabs(want) + 1e-7);
      }
    }
  }
}

TYPED_TEST(Linear, MatchesSumsInDouble) {
  // One block of columns, more groups than simdgroups, outputs that fill no block.
  for (const Shape shape : {Shape{128, 32}, Shape{1280, 50}, Shape{384, 2}}) {
    const typename TestFixture::Packed setup(shape);
    const std::vector<float> w = setup.source.all();
    for (const int rows : {1, 3, 21}) {
      const std::vector<float> x = random_floats(static_cast<std::size_t>(rows) * shape.cols, 3);
      std::vector<int> index(rows);
      for (int r = 0; r < rows; ++r) index[r] = rows - 1 - r;
      const auto result = TestFixture::run(setup, x, index);
      for (int r = 0; r < rows; ++r) {
        const float* in = result.prepared.data() + static_cast<std::size_t>(r) * shape.cols;
        double size = 0;
        auto product = [&](int o) {
          double sum = setup.bias.values()[o];
          for (int k = 0; k < shape.cols; ++k) {
            const double term = double{in[k]} * w[static_cast<std::size_t>(o) * shape.cols + k];
            sum += term;
            size += std::fabs(term);
          }
          return sum;
        };
        for (int o = 0; o < setup.written(); ++o) {
          size = 0;
          const double gate = product(o);
          const double up = TestFixture::kGlu ? product(setup.written() + o) : 0;
          const double want = TestFixture::finish(gate, up);
          const double bound =
              TestFixture::kGlu ? 2e-6 * size * (1 + std::fabs(up) + std::fabs(gate)) : 2e-6 * size;
          ASSERT_NEAR(want, result.y[static_cast<std::size_t>(r) * result.stride + 3 + o], bound)
              << "cols " << shape.cols << " row " << r << " of " << rows << " output " << o;
        }
        // The columns beside are another matrix's.
        for (int o = 0; o < 3; ++o) ASSERT_EQ(0.5F, result.y[r * result.stride + o]);
        ASSERT_EQ(0.5F, result.y[r * result.stride + 3 + setup.written()]);
      }
    }
  }
}

TYPED_TEST(Linear, ARowNeverDependsOnItsNeighbours) {
  constexpr int kMost = 64;
  const Shape shape{256, 40};
  const typename TestFixture::Packed setup(shape);
  const std::vector<float> x = random_floats(kMost * shape.cols, 5);
  std::vector<std::vector<float>> alone;
  for (int r = 0; r < kMost; ++r) alone.push_back(TestFixture::run(setup, x, {r}).y);
  for (int rows = 2; rows <= kMost; rows += rows < 10 ? 1 : 9) {
    std::vector<int> index(rows);
    for (int r = 0; r < rows; ++r) index[r] = r;
    const auto y = TestFixture::run(setup, x, index);
    for (int r = 0; r < rows; ++r) {
      ASSERT_EQ(0, std::memcmp(y.y.data() + r * y.stride, alone[r].data(), y.stride * 4))
          << "row " << r << " of " << rows;
    }
  }
}

// Fewer bits lie in the words of four or eight.
TEST(LinearFormats, EveryAffineWidthIsPackedWithoutLoss) {
  for (const int bits : {1, 2, 3, 5, 6}) {
    const WeightFormat format{WeightFormat::Kind::kAffine, bits, 64, FloatType::kF16};
    ASSERT_TRUE(bodega::ops::metal::packable(format, 128));
    const RandomWeights source(format, {40, 128}, 3);
    const PackedLayout layout = bodega::ops::metal::layout_for(source, false);
    EXPECT_EQ(bits < 4 ? 4 : 8, layout.bits);
    std::vector<std::uint8_t> data(layout.bytes());
    for (int b = 0; b < layout.blocks(); ++b) {
      pack_block(source, layout, b, data.data() + layout.block_bytes() * b);
    }
    const std::vector<float> want = source.all();
    std::vector<float> row(128);
    for (int r = 0; r < 40; ++r) {
      read_packed_row(layout, data.data(), r, row.data());
      ASSERT_EQ(0, std::memcmp(row.data(), want.data() + r * 128, sizeof(float) * 128)) << r;
    }
  }
}

// One, two or four row tiles are a matter of speed only.
TEST(LinearTiles, GiveTheSameBits) {
  const std::vector<float> x = random_floats(33 * 320, 5);
  std::vector<int> index(33);
  for (int r = 0; r < 33; ++r) index[r] = r;
  const Shape shape{320, 64};
  const auto one = Rig<f4x1::Kernels>::run(Rig<f4x1::Kernels>::Packed(shape), x, index);
  const auto two = Rig<f4x2::Kernels>::run(Rig<f4x2::Kernels>::Packed(shape), x, index);
  const auto four = Rig<f4x4::Kernels>::run(Rig<f4x4::Kernels>::Packed(shape), x, index);
  EXPECT_EQ(one.y, two.y);
  EXPECT_EQ(one.y, four.y);
}

}  // namespace
}  // namespace metal_host
