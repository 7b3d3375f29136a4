#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bodega {

// Threads worth starting: BODEGA_THREADS when set (1-1024, throws Error(kConfig) otherwise), else
// the processors this process may run on, less what its cgroup's quota takes away, at least 1.
// Read once a call; callers keep it.
int cpu_count();

// The parts, for `doctor` and tests.
int affinity_cpu_count();                  // sched_getaffinity, or the performance cores
std::optional<double> cgroup_cpu_limit();  // processors' worth of time, e.g. 1.5
std::optional<double> parse_cpu_max(std::string_view text);  // "150000 100000", "max 100000"

}  // namespace bodega
