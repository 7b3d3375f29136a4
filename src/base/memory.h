#pragma once

#include <cstdint>
#include <optional>

// What the system says of memory, in bytes; nothing where it does not say (or the process is gone).
namespace bodega {

struct ProcessMemory {
  std::uint64_t resident_bytes = 0;
  std::uint64_t peak_resident_bytes = 0;  // high-water mark; 0 for another process on macOS
};

std::optional<ProcessMemory> process_memory();         // this process
std::optional<ProcessMemory> process_memory(int pid);  // another of the same user, e.g. a worker

struct SystemMemory {
  std::uint64_t total_bytes = 0;      // of the machine, or the cgroup's limit where that is lower
  std::uint64_t available_bytes = 0;  // what a new allocation could get without swapping
};

std::optional<SystemMemory> system_memory();

}  // namespace bodega
