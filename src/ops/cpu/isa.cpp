#include "base/env.h"
#include "base/errors.h"
#include "ops/cpu/kernels.h"

namespace bodega::ops::cpu {
namespace {

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
#endif

}  // namespace

const Kernels* find_kernels(std::string_view name) {
  if (name == "scalar") return &scalar_kernels();
#if defined(__x86_64__)
  if (name == "avx2" && has_avx2()) return &avx2_kernels();
  if (name == "avx512" && has_avx512()) return &avx512_kernels();
#endif
  return nullptr;
}

const Kernels& choose_kernels() {
  const std::string forced = env_string("BODEGA_CPU_ISA").value_or("");
  if (!forced.empty()) {
    const Kernels* table = find_kernels(forced);
    if (table != nullptr) return *table;
    throw Error(
        ErrorKind::kConfig,
        "BODEGA_CPU_ISA=" + forced + " cannot run on this processor: use scalar, avx2 or avx512");
  }
  for (const char* name : {"avx512", "avx2"}) {
    if (const Kernels* table = find_kernels(name)) return *table;
  }
  return scalar_kernels();
}

}  // namespace bodega::ops::cpu
