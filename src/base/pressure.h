#pragma once

#include <string_view>

namespace bodega {

// How short of memory the whole system is, as it says itself.
enum class MemoryPressure { kNone, kSome, kCritical };

// Linux: the share of the last ten seconds in which something waited for memory
// (/proc/pressure/memory). macOS: the kernel's own level. kNone where the system does not say.
MemoryPressure system_memory_pressure();

// The text of /proc/pressure/memory; kNone when it is not understood.
MemoryPressure parse_pressure(std::string_view text);

}  // namespace bodega
