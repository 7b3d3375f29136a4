// The CPU kernels alone, one thread: arithmetic rate by number of rows, and bytes of weights a
// second.
//   kernels_bench --benchmark_filter='linear/avx2'
#include <benchmark/benchmark.h>

#include <string>

#include "kernel_cases.h"

namespace {

using namespace bodega::ops::cpu;  // NOLINT: a program of one file

benchmark::Counter rate(const benchmark::State& state, double amount) {
  return {static_cast<double>(state.iterations()) * amount / 1e9, benchmark::Counter::kIsRate};
}

void linear(benchmark::State& state, const Kernels& kernels, int bits, bool fast) {
  LinearCase work(kernels, bits, static_cast<int>(state.range(0)), fast);
  for (auto _ : state) work.run();
  state.counters["GMAC/s"] = rate(state, work.products());
  state.counters["weight GB/s"] = rate(state, work.weight_bytes());
}

void attention(benchmark::State& state, const Kernels& kernels) {
  AttentionCase work(kernels, static_cast<int>(state.range(0)));
  for (auto _ : state) work.run();
  state.counters["GMAC/s"] = rate(state, work.products());
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
