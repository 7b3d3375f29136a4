#include "base/cpu.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "base/env.h"

#ifdef __APPLE__
#include <sys/sysctl.h>
#else
#include <sched.h>
#endif

namespace bodega {

int affinity_cpu_count() {
#ifdef __APPLE__
  // Efficiency cores would hold up every barrier of a step.
  int performance_cores = 0;
  std::size_t size = sizeof performance_cores;
  if (sysctlbyname("hw.perflevel0.physicalcpu", &performance_cores, &size, nullptr, 0) == 0 &&
      performance_cores > 0) {
    return performance_cores;
  }
#else
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const char* end = std::to_address(text.end());
  std::int64_t quota = 0;
  const auto [after_quota, quota_problem] =
      std::from_chars(std::to_address(text.begin()), end, quota);
  if (quota_problem != std::errc() || after_quota == end || *after_quota != ' ') {
    return std::nullopt;
  }
  std::int64_t period = 0;
  const auto [after, period_problem] = std::from_chars(after_quota + 1, end, period);
  if (period_problem != std::errc() || quota <= 0 || period <= 0) return std::nullopt;
  return static_cast<double>(quota) / static_cast<double>(period);
}

std::optional<double> cgroup_cpu_limit() {
  std::string line;
  if (std::ifstream unified("/sys/fs/cgroup/cpu.max"); std::getline(unified, line)) {
    return parse_cpu_max(line);
  }
  std::ifstream quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  std::string period_line;
  if (!std::getline(quota, line) || !std::getline(period, period_line)) return std::nullopt;
  return parse_cpu_max(line + " " + period_line);
}

int cpu_count() {
  if (const auto asked = env_int("BODEGA_THREADS", 1, 1024)) return static_cast<int>(*asked);
  int count = affinity_cpu_count();
  if (const auto limit = cgroup_cpu_limit()) {
    count = std::min(count, static_cast<int>(std::ceil(*limit)));
  }
  return std::max(1, count);
}

}  // namespace bodega
