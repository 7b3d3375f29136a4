#include "base/memory.h"

#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#ifdef __APPLE__
#include <libproc.h>
#include <mach/mach.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#endif

namespace bodega {

#ifdef __APPLE__

std::optional<ProcessMemory> process_memory(int pid) {
  rusage_info_v4 usage{};
  auto* out = reinterpret_cast<rusage_info_t*>(&usage);
  if (proc_pid_rusage(pid, RUSAGE_INFO_V4, out) != 0) return std::nullopt;
  // The physical footprint is what Activity Monitor shows and what the system's limits count.
  return ProcessMemory{usage.ri_phys_footprint, usage.ri_lifetime_max_phys_footprint};
}

std::optional<SystemMemory> system_memory() {
  std::uint64_t total = 0;
  std::size_t size = sizeof total;
  if (sysctlbyname("hw.memsize", &total, &size, nullptr, 0) != 0) return std::nullopt;
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  auto* out = reinterpret_cast<host_info64_t>(&pages);
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64, out, &count) != KERN_SUCCESS) {
    return std::nullopt;
  }
  const std::uint64_t free_pages =
      std::uint64_t{pages.free_count} + pages.inactive_count + pages.purgeable_count;
  return SystemMemory{total, free_pages * static_cast<std::uint64_t>(getpagesize())};
}

#else

namespace {

// The number of kB after `key` in a file of "Key:   123 kB" lines, in bytes.
std::optional<std::uint64_t> kilobyte_line(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto digits = line.find_first_of("0123456789", key.size());
    if (digits == std::string::npos) return std::nullopt;
    std::uint64_t value = 0;
    std::from_chars(line.data() + digits, line.data() + line.size(), value);
    return value * 1024;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // absent, or "max"
}

}  // namespace

std::optional<ProcessMemory> process_memory(int pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  const auto resident = kilobyte_line(path, "VmRSS:");
  if (!resident) return std::nullopt;
  return ProcessMemory{*resident, kilobyte_line(path, "VmHWM:").value_or(*resident)};
}

std::optional<SystemMemory> system_memory() {
  const auto total = kilobyte_line("/proc/meminfo", "MemTotal:");
  const auto available = kilobyte_line("/proc/meminfo", "MemAvailable:");
  if (!total || !available) return std::nullopt;
  SystemMemory memory{*total, *available};
  // In a container the root of the mounted hierarchy is our own group.
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (limit && used && *limit < memory.total_bytes) {
    memory.total_bytes = *limit;
    const std::uint64_t left = *limit > *used ? *limit - *used : 0;
    if (left < memory.available_bytes) memory.available_bytes = left;
  }
  return memory;
}

#endif

std::optional<ProcessMemory> process_memory() { return process_memory(getpid()); }

}  // namespace bodega
