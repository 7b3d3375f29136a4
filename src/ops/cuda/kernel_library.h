#pragma once

#include <map>
#include <string>

#include "ops/cuda/driver.h"

namespace bodega::ops::cuda {

// The sources of kernels/, part of the binary (written by the build).
struct KernelSources {
  const char* common;  // args.h and common.cuh
  const char* rows;
  const char* paged_attention;
  const char* quant_linear;
};
extern const KernelSources kKernelSources;

// A kernel and what a launch of it needs.
struct Kernel {
  FunctionHandle function = nullptr;
  unsigned shared = 0;
};

// Kernels compiled for this device, a module for each source and set of definitions. Compiled code
// is kept in a folder of the user's cache, named by a hash of source, options and compiler.
class KernelLibrary {
 public:
  explicit KernelLibrary(const Driver& driver) : driver_(driver) {}

  // `definitions`: "-DBODEGA_BITS=4 ...", separated by blanks.
  Kernel get(const char* source, const std::string& definitions, const char* name, unsigned shared);

 private:
  ModuleHandle module(const char* source, const std::string& definitions);

  const Driver& driver_;
  std::map<std::string, ModuleHandle> modules_;
};

}  // namespace bodega::ops::cuda
