#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bodega::ops::metal {

// Memory that the CPU and the GPU share.
class Memory {
 public:
  Memory() = default;
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual std::uint8_t* data() = 0;  // the GPU may still be writing: read after the step has run
  virtual std::size_t bytes() const = 0;
};

// One function of one source of kernels/, compiled with macros.
struct Kernel {
  std::string file;  // "quant_linear"
  std::string function;
  std::vector<std::pair<std::string, std::string>> macros;
  // Unlike for kernels that are compiled unlike: the file and its macros.
  std::string library() const;
};

struct Argument {
  Memory* memory;
  std::size_t offset = 0;  // bytes
  bool written = false;
};

struct Grid {  // threadgroups
  int x = 1;
  int y = 1;
};

// Parameters are buffer 0, the arguments buffers 1, 2 and so on.
struct Dispatch {
  const Kernel& kernel;
  const void* params;
  std::size_t param_bytes;
  std::vector<Argument> arguments;
  Grid grid;
  int threads;  // of a threadgroup
};

// As much of a GPU as a step needs. Metal's through MLX on a Mac (backend.cpp), an emulation in
// tests.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual std::unique_ptr<Memory> allocate(std::size_t bytes) = 0;
  // Takes memory back once everything dispatched so far has run.
  virtual void retire(std::unique_ptr<Memory> memory) = 0;
  // Dispatches run in order; each sees what those before it wrote.
  virtual void dispatch(const Dispatch& dispatch) = 0;
};

template <typename T>
Dispatch make_dispatch(const Kernel& kernel, const T& params, std::vector<Argument> arguments,
                       Grid grid, int threads) {
  return {kernel, &params, sizeof params, std::move(arguments), grid, threads};
}

}  // namespace bodega::ops::metal
