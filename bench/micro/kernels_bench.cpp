// The CPU kernels alone, one thread: arithmetic rate by number of rows, and bytes of weights a
// second.
//   kernels_bench --benchmark_filter='linear/avx2'
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "ops/cpu/kernels.h"
#include "ops/cpu/packed_matrix.h"

namespace {

using namespace bodega;            // NOLINT: a program of one file
using namespace bodega::ops;       // NOLINT
using namespace bodega::ops::cpu;  // NOLINT

struct alignas(64) Line {
  unsigned char bytes[64];
};

// Codes that cost nothing to make; the kernels do not look at them.
class Pattern : public WeightSource {
 public:
  Pattern(int bits, int rows, int cols)
      : WeightSource({WeightFormat::Kind::kAffine, bits, 32, FloatType::kF16}, rows, cols) {}
  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    const int mask = (1 << format().bits) - 1;
    for (int i = 0; i < count * cols(); ++i)
      codes[i] = static_cast<std::uint8_t>((i * 7 + row) & mask);
    for (int i = 0; i < count * cols() / 32; ++i) {
      scales[i] = 0.01F;
      biases[i] = -0.05F;
    }
  }
};

void linear(benchmark::State& state, const Kernels& kernels, int bits, bool fast) {
  const int rows = static_cast<int>(state.range(0));
  constexpr int kCols = 1536;
  constexpr int kOutputs = 576 * 8;
  ThreadPool pool(1);
  const PackedMatrix w(Pattern(bits, kOutputs, kCols), kernels, {.fast = fast}, pool);
  const std::size_t groups = static_cast<std::size_t>(padded_rows(rows)) * kCols / kGroup;
  std::vector<std::int32_t> q(groups * 16, 1);
  std::vector<float> scale(groups, 1.0F), sum(groups, 1.0F);
  std::vector<std::int32_t> isum(groups, 1);
  const QuantizedRows x{q.data(), scale.data(),        sum.data(),          isum.data(),
                        kCols,    interleave_of(rows), w.view().activations};
  std::vector<float> out(static_cast<std::size_t>(rows) * 2 * kernels.lanes);
  std::vector<Line> scratch(kScratchBytes / sizeof(Line));
  for (auto _ : state) {
    for (int tile = 0; tile < w.tiles(); tile += 2) {
      kernels.linear(w.view(), tile, tile + 1, x, rows, out.data(), scratch.data());
    }
    benchmark::DoNotOptimize(out.data());
  }
  const double passes = static_cast<double>(state.iterations());
  state.counters["GMAC/s"] =
      benchmark::Counter(passes * rows * kOutputs * kCols / 1e9, benchmark::Counter::kIsRate);
  state.counters["weight GB/s"] = benchmark::Counter(passes * static_cast<double>(w.bytes()) / 1e9,
                                                     benchmark::Counter::kIsRate);
}

void attention(benchmark::State& state, const Kernels& kernels) {
  const int rows = static_cast<int>(state.range(0));
  constexpr int kTokens = 1024;
  constexpr int kDim = 64;
  std::vector<std::uint16_t> slab(std::size_t{kTokens} * kDim * 2, 0x3000);
  const std::uint16_t* slabs[] = {slab.data()};
  std::vector<core::BlockRef> blocks;
  for (int b = 0; b < kTokens / 16; ++b) blocks.push_back({0, b});
  const KvView kv{slabs, blocks.data(), 32 * kDim, 0, 16 * kDim, kDim};
  std::vector<float> q(static_cast<std::size_t>(rows) * kDim, 0.5F), values(q.size());
  AttentionRows view;
  view.count = rows;
  view.scale = 0.125F;
  AttentionState states[kAttentionRows];
  for (int r = 0; r < rows; ++r) {
    view.q[r] = q.data() + r * kDim;
    view.position[r] = kTokens - 1;
    states[r].values = values.data() + r * kDim;
  }
  std::vector<Line> scratch(kScratchBytes / sizeof(Line));
  for (auto _ : state) {
    kernels.attend(kv, view, 0, states, scratch.data());
    benchmark::DoNotOptimize(values.data());
  }
  state.counters["GMAC/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * rows * kTokens * kDim * 2 / 1e9,
                         benchmark::Counter::kIsRate);
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* isa : kernel_names()) {
    const Kernels* kernels = find_kernels(isa);
    if (kernels == nullptr) continue;
    for (bool fast : {false, true}) {
      for (int bits : {4, 8}) {
        const std::string name =
            std::string("linear/") + isa + "/" + std::to_string(bits) + (fast ? "bit_fast" : "bit");
        auto* bench = benchmark::RegisterBenchmark(
            name.c_str(), [=](benchmark::State& s) { linear(s, *kernels, bits, fast); });
        for (int rows : {1, 2, 4, 8, 32, 128}) bench->Arg(rows);
      }
    }
    auto* bench =
        benchmark::RegisterBenchmark((std::string("attention/") + isa).c_str(),
                                     [=](benchmark::State& s) { attention(s, *kernels); });
    for (int rows : {3, 12, 48}) bench->Arg(rows);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
