#pragma once

#include <optional>
#include <string>

namespace bodega::engine {

struct DiskSpeed {
  double read = 0;   // bytes/s past the page cache
  double write = 0;  // bytes/s
  double latency_s = 0;
};

// Writes and reads a few MiB in this folder, in well under a second on an SSD; nothing where the
// folder cannot be used.
std::optional<DiskSpeed> measure_disk(const std::string& folder);

}  // namespace bodega::engine
