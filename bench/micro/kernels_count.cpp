// Runs one kernel once, for an instruction counter that collects inside counted_run alone:
//   BODEGA_CPU_ISA=avx2 valgrind --tool=callgrind --toggle-collect=counted_run kernels_count linear
//   4 8
// scripts/instruction_counts.py does that for all cases.
#include <cstdlib>
#include <functional>
#include <iostream>
#include <span>
#include <string>

#include "kernel_cases.h"

extern "C" __attribute__((noinline)) void counted_run(const std::function<void()>& run) { run(); }

int main(int argc, char** argv) {
  using namespace bodega::ops::cpu;  // NOLINT: a program of one file
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  const Kernels& kernels = choose_kernels();
  if (words.size() == 4 && std::string(words[1]) == "linear") {
    LinearCase work(kernels, std::atoi(words[2]), std::atoi(words[3]), false);
    counted_run([&] { work.run(); });
    return 0;
  }
  if (words.size() == 3 && std::string(words[1]) == "attention") {
    AttentionCase work(kernels, std::atoi(words[2]));
    counted_run([&] { work.run(); });
    return 0;
  }
  std::cerr << "usage: kernels_count linear BITS ROWS | attention ROWS\n";
  return 2;
}
