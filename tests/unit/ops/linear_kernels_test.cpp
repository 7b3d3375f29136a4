// Every instruction set this processor can run, against sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/packed_matrix.h"
#include "random_weights.h"

namespace bodega::ops::cpu {
namespace {

struct alignas(64) Line {
  unsigned char bytes[64];
};

struct Case {
  const char* isa;
  WeightFormat format;
  bool symmetric;
  bool fast = false;  // int8 activations
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const WeightFormat& f = info.param.format;
  const char* const types[] = {"f32", "f16", "bf16"};
  const char* const kinds[] = {"", "", "_mxfp4", "_mxfp8", "_nvfp4"};
  std::string name = std::string(info.param.isa) + "_" + types[static_cast<int>(f.type)] +
                     kinds[static_cast<int>(f.kind)];
  if (f.quantized()) name += "_b" + std::to_string(f.bits) + "_g" + std::to_string(f.group_size);
  return name + (info.param.symmetric ? "_symmetric" : "") + (info.param.fast ? "_fast" : "");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* isa : kernel_names()) {
    if (find_kernels(isa) == nullptr) continue;
    for (int bits : {1, 2, 3, 4, 5, 6, 8}) {
      all.push_back({isa, {WeightFormat::Kind::kAffine, bits, 32, FloatType::kF16}, false});
      all.push_back({isa, {WeightFormat::Kind::kAffine, bits, 32, FloatType::kF16}, false, true});
    }
    all.push_back({isa, {WeightFormat::Kind::kAffine, 4, 64, FloatType::kF16}, true, true});
    for (int group : {64, 128}) {
      all.push_back({isa, {WeightFormat::Kind::kAffine, 4, group, FloatType::kBF16}, false});
    }
    all.push_back({isa, {WeightFormat::Kind::kAffine, 4, 64, FloatType::kF32}, false});
    all.push_back({isa, {WeightFormat::Kind::kAffine, 4, 32, FloatType::kF16}, true});
    all.push_back({isa, {WeightFormat::Kind::kAffine, 8, 32, FloatType::kF16}, true});
    all.push_back({isa, {WeightFormat::Kind::kMxfp4, 4, 32, FloatType::kF32}, false});
    all.push_back({isa, {WeightFormat::Kind::kMxfp4, 4, 32, FloatType::kF32}, false, true});
    all.push_back({isa, {WeightFormat::Kind::kMxfp8, 8, 32, FloatType::kF32}, false});
    all.push_back({isa, {WeightFormat::Kind::kNvfp4, 4, 16, FloatType::kF32}, false});
    for (FloatType type : {FloatType::kF32, FloatType::kF16, FloatType::kBF16}) {
      all.push_back({isa, {WeightFormat::Kind::kDense, 0, 0, type}, false});
    }
  }
  return all;
}

class LinearKernels : public testing::TestWithParam<Case> {
 protected:
  static constexpr int kCols = 384;  // more than one panel, not a whole number of them
  static constexpr int kOutputs = 50;

  LinearKernels()
      : kernels_(*find_kernels(GetParam().isa)),
        pool_(2),
        source_(GetParam().format, {kOutputs, kCols}, 7, GetParam().symmetric),
        packed_(source_, kernels_, {.fast = GetParam().fast}, pool_),
        scratch_(kScratchBytes / sizeof(Line)) {}

  // y [rows, kOutputs] by the kernel, all rows in one call.
  std::vector<float> multiply(const std::vector<float>& x, int rows) {
    const PackedView& w = packed_.view();
    const std::size_t groups = static_cast<std::size_t>(padded_rows(rows)) * kCols / kGroup;
    std::vector<std::int32_t> q(groups * words_of(w.activations));
    std::vector<float> scale(groups), sum(groups);
    std::vector<std::int32_t> isum(groups);
    const QuantizedRows quantized{q.data(), scale.data(),        sum.data(),   isum.data(),
                                  kCols,    interleave_of(rows), w.activations};
    for (int r = 0; r < rows; ++r) kernels_.quantize(x.data() + r * kCols, quantized, r);
    std::vector<float> y(static_cast<std::size_t>(rows) * kOutputs);
    const int lanes = kernels_.lanes;
    std::vector<float> out(static_cast<std::size_t>(rows) * 2 * lanes);
    for (int tile = 0; tile < packed_.tiles(); tile += 2) {
      const int second = tile + 1 < packed_.tiles() ? tile + 1 : -1;
      if (packed_.view().storage == Storage::kAffine) {
        kernels_.linear(packed_.view(), tile, second, quantized, rows, out.data(), scratch_.data());
      } else {
        kernels_.dense(packed_.view(), tile, second, x.data(), rows, out.data());
      }
      for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < 2 * lanes && tile * lanes + i < kOutputs; ++i) {
          if (i >= lanes && second < 0) break;
          y[r * kOutputs + tile * lanes + i] = out[r * 2 * lanes + i];
        }
      }
    }
    return y;
  }

  const Kernels& kernels_;
  ThreadPool pool_;
  RandomWeights source_;
  PackedMatrix packed_;
  std::vector<Line> scratch_;
};

TEST_P(LinearKernels, PackingLosesNothing) {
  const std::vector<float> want = source_.all();
  std::vector<float> row(kCols);
  for (int r = 0; r < kOutputs; ++r) {
    packed_.read_row(r, row.data());
    for (int i = 0; i < kCols; ++i) ASSERT_EQ(row[i], want[r * kCols + i]) << r << " " << i;
  }
}

TEST_P(LinearKernels, MatchesSumsInDouble) {
  constexpr int kRows = 19;
  const std::vector<float> x = random_floats(kRows * kCols, 3);
  const std::vector<float> w = source_.all();
  const std::vector<float> y = multiply(x, kRows);
  const bool coarse = packed_.view().activations == Activations::kInt8;
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOutputs; ++o) {
      double sum = 0;
      double size = 0;
      for (int k = 0; k < kCols; ++k) {
        const double product = double{x[r * kCols + k]} * w[o * kCols + k];
        sum += product;
        size += std::fabs(product);
      }
      ASSERT_NEAR(sum, y[r * kOutputs + o], (coarse ? 8e-3 : 4e-5) * size)
          << "row " << r << " output " << o;
    }
  }
}

TEST_P(LinearKernels, ARowNeverDependsOnItsNeighbours) {
  constexpr int kMost = 64;
  const std::vector<float> x = random_floats(kMost * kCols, 5);
  std::vector<std::vector<float>> alone;
  for (int r = 0; r < kMost; ++r) {
    const std::vector<float> one(x.begin() + r * kCols, x.begin() + (r + 1) * kCols);
    alone.push_back(multiply(one, 1));
  }
  for (int rows = 2; rows <= kMost; ++rows) {
    const std::vector<float> y = multiply(x, rows);
    for (int r = 0; r < rows; ++r) {
      ASSERT_EQ(0, std::memcmp(y.data() + r * kOutputs, alone[r].data(), kOutputs * sizeof(float)))
          << "row " << r << " of " << rows;
    }
  }
}

// Rows at the ends of fp32: what a kernel may not do is trap, overflow its integers or spread NaN.
TEST_P(LinearKernels, ExtremeRowsStayWithinTheirBounds) {
  const std::vector<float> w = source_.all();
  std::vector<float> x(4 * kCols, 0.0F);  // row 0: zeros
  for (int k = 0; k < kCols; ++k) {
    x[kCols + k] = 1e-41F;                           // denormal
    x[2 * kCols + k] = k % 2 == 0 ? 1e30F : -1e30F;  // every code at its limit
    x[3 * kCols + k] = k < 32 ? 3.0F : 0.0F;         // groups of zeros beside others
  }
  const std::vector<float> y = multiply(x, 4);
  for (int o = 0; o < kOutputs; ++o) {
    double alternating = 0;
    double size = 0;
    double first = 0;
    for (int k = 0; k < kCols; ++k) {
      alternating += double{x[2 * kCols + k]} * w[o * kCols + k];
      size += 1e30 * std::fabs(w[o * kCols + k]);
      if (k < 32) first += 3.0 * w[o * kCols + k];
    }
    EXPECT_EQ(0.0F, y[o]);
    EXPECT_LT(std::fabs(y[kOutputs + o]), 1e-30F);
    EXPECT_NEAR(alternating, y[2 * kOutputs + o], 4e-5 * size);
    EXPECT_NEAR(first, y[3 * kOutputs + o], 2e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LinearKernels, testing::ValuesIn(cases()), name_of);

// Every code and every activation at its maximum: the largest sum that int32 has to hold.
class FullCodes : public WeightSource {
 public:
  FullCodes(int bits, int rows, int cols)
      : WeightSource({WeightFormat::Kind::kAffine, bits, kGroup, FloatType::kF16}, rows, cols) {}
  void read_codes(int, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    const int top = (1 << format().bits) - 1;
    std::fill_n(codes, std::size_t(count) * cols(), static_cast<std::uint8_t>(top));
    std::fill_n(scales, std::size_t(count) * cols() / kGroup, 1.0F);
    std::fill_n(biases, std::size_t(count) * cols() / kGroup, 0.0F);
  }
};

// One tile times `rows` rows that hold `value` everywhere: [rows, 2 * lanes].
std::vector<float> times_constant(const Kernels& kernels, const PackedMatrix& packed, int rows,
                                  float value) {
  const int cols = packed.cols();
  const Activations activations = packed.view().activations;
  const std::size_t groups = static_cast<std::size_t>(padded_rows(rows)) * cols / kGroup;
  std::vector<std::int32_t> q(groups * words_of(activations)), isum(groups);
  std::vector<float> scale(groups), sum(groups);
  const QuantizedRows x{q.data(), scale.data(),        sum.data(), isum.data(),
                        cols,     interleave_of(rows), activations};
  const std::vector<float> row(cols, value);
  for (int r = 0; r < rows; ++r) kernels.quantize(row.data(), x, r);
  std::vector<float> out(static_cast<std::size_t>(rows) * 2 * kernels.lanes);
  std::vector<Line> scratch(kScratchBytes / sizeof(Line));
  kernels.linear(packed.view(), 0, -1, x, rows, out.data(), scratch.data());
  return out;
}

// Sixty-four columns of the greatest code, times one or minus one.
void expect_products(const std::vector<float>& y, int lanes, int bits, int sign) {
  const double want = sign * 64.0 * ((1 << bits) - 1);
  for (std::size_t i = 0; i < y.size() / 2; ++i) {
    EXPECT_NEAR(want, y[i / lanes * 2 * lanes + i % lanes], 0.02) << bits << " bits";
  }
}

TEST(LinearSums, TheLargestOnesFitInt32) {
  constexpr int kCols = 64;
  ThreadPool pool(1);
  for (const char* isa : kernel_names()) {
    const Kernels* kernels = find_kernels(isa);
    if (kernels == nullptr) continue;
    const int lanes = kernels->lanes;
    for (int bits : {4, 6, 8}) {
      const FullCodes source(bits, lanes, kCols);
      const PackedMatrix faithful(source, *kernels, {}, pool);
      const PackedMatrix fast(source, *kernels, {.fast = true}, pool);
      for (int rows : {1, 2, 4, 9}) {
        expect_products(times_constant(*kernels, faithful, rows, 1.0F), lanes, bits, 1);
        expect_products(times_constant(*kernels, faithful, rows, -1.0F), lanes, bits, -1);
        expect_products(times_constant(*kernels, fast, rows, -1.0F), lanes, bits, -1);
      }
    }
  }
}

class SmallKernels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (find_kernels(GetParam()) == nullptr) GTEST_SKIP() << "this processor has no " << GetParam();
    kernels_ = find_kernels(GetParam());
  }
  const Kernels* kernels_ = nullptr;
};

TEST_P(SmallKernels, RmsNorm) {
  const std::vector<float> x = random_floats(96, 1, 3.0F);
  const std::vector<float> w = random_floats(96, 2);
  std::vector<float> y(96);
  kernels_->rms_norm(x.data(), w.data(), 1e-5F, 1.0F, 96, y.data());
  double squares = 0;
  for (float v : x) squares += double{v} * v;
  for (int i = 0; i < 96; ++i) {
    EXPECT_NEAR(x[i] / std::sqrt(squares / 96 + 1e-5) * (w[i] + 1.0), y[i],
                2e-6 * std::fabs(y[i]) + 1e-7);
  }
}

TEST_P(SmallKernels, GatedUnits) {
  std::vector<float> gate = random_floats(64, 1, 4.0F);
  gate[0] = -120.0F;
  gate[1] = 120.0F;
  gate[2] = 0.0F;
  const std::vector<float> up = random_floats(64, 2);
  std::vector<float> y(64);
  kernels_->glu(Glu::kSilu, gate.data(), up.data(), 64, y.data());
  for (int i = 0; i < 64; ++i) {
    const double want = gate[i] / (1.0 + std::exp(-double{gate[i]})) * up[i];
    EXPECT_NEAR(want, y[i], 3e-6 * std::fabs(want) + 1e-30) << gate[i];
  }
  kernels_->glu(Glu::kGeluTanh, gate.data(), up.data(), 64, y.data());
  for (int i = 0; i < 64; ++i) {
    const double g = gate[i];
    const double want =
        0.5 * g * (1 + std::tanh(0.7978845608028654 * (g + 0.044715 * g * g * g))) * up[i];
    EXPECT_NEAR(want, y[i], 1e-5 * std::fabs(want) + 1e-6) << gate[i];
  }
}

TEST_P(SmallKernels, RotatesPairsOfBothKinds) {
  for (bool interleaved : {false, true}) {
    for (int half : {8, 20, 32, 64}) {
      const std::vector<float> x = random_floats(2 * half + 16, 4);
      std::vector<float> c(half), s(half), y = x;
      for (int i = 0; i < half; ++i) {
        c[i] = std::cos(0.3F * i);
        s[i] = std::sin(0.3F * i);
      }
      kernels_->rotate(y.data(), c.data(), s.data(), half, interleaved);
      for (int i = 0; i < half; ++i) {
        const int a = interleaved ? 2 * i : i;
        const int b = interleaved ? 2 * i + 1 : i + half;
        EXPECT_NEAR(x[a] * c[i] - x[b] * s[i], y[a], 1e-6);
        EXPECT_NEAR(x[b] * c[i] + x[a] * s[i], y[b], 1e-6);
      }
      for (int i = 2 * half; i < 2 * half + 16; ++i) EXPECT_EQ(x[i], y[i]);  // untouched
    }
  }
}

TEST_P(SmallKernels, ArgmaxTakesTheLowestOfEquals) {
  for (int count : {1, 5, 16, 33, 1000}) {
    std::vector<float> x = random_floats(count, count);
    x[count / 2] = 50.0F;
    if (count > 5) x[count - 1] = 50.0F;
    EXPECT_EQ(count / 2, kernels_->argmax(x.data(), count));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmallKernels,
                         testing::ValuesIn(kernel_names().begin(), kernel_names().end()));

TEST(Half, RoundTripsEveryValue) {
  for (unsigned h = 0; h < 65536; ++h) {
    const float value = half_to_float(static_cast<std::uint16_t>(h));
    if (std::isnan(value)) continue;
    ASSERT_EQ(h, float_to_half(value)) << value;
  }
}

}  // namespace
}  // namespace bodega::ops::cpu
