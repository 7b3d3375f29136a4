#include <algorithm>
#include <string>

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
bool has_avxvnni() { return has_avx2() && __builtin_cpu_supports("avxvnni"); }
#endif

// Best first.
constexpr const char* kNames[] = {
#if defined(__x86_64__)
    "avx512",
    "avxvnni",
    "avx2",
#elif defined(__aarch64__)
    "neon",
#endif
    "scalar",
};

std::string usable_names() {
  std::string list;
  for (const char* name : kNames) {
    if (find_kernels(name) != nullptr) list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return list;
}

}  // namespace

std::span<const char* const> kernel_names() { return kNames; }

const Kernels* find_kernels(std::string_view name) {
  if (name == "scalar") return &scalar_kernels();
#if defined(__x86_64__)
  if (name == "avx2" && has_avx2()) return &avx2_kernels();
  if (name == "avxvnni" && has_avxvnni()) return &avxvnni_kernels();
  if (name == "avx512" && has_avx512()) return &avx512_kernels();
#elif defined(__aarch64__)
  if (name == "neon") return &neon_kernels();  // every 64-bit Arm processor has it
#endif
  return nullptr;
}

const Kernels& choose_kernels() {
  const std::string forced = env_string("BODEGA_CPU_ISA").value_or("");
  if (!forced.empty()) {
    const Kernels* table = find_kernels(forced);
    if (table != nullptr) return *table;
    throw Error(ErrorKind::kConfig, "BODEGA_CPU_ISA=" + forced +
                                        " cannot run on this processor: use one of " +
                                        usable_names() + ".");
  }
  return *find_kernels(*std::ranges::find_if(
      kNames, [](const char* name) { return find_kernels(name) != nullptr; }));
}

}  // namespace bodega::ops::cpu
