#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bodega::cost {

// The constants of a machine: measured at start, or written down for a simulation.
struct MachineProfile {
  std::string name;
  double bandwidth = 0;   // bytes/s of memory that kernels reach, all readers together
  double flops = 0;       // operations/s of a step with many rows
  double overhead_s = 0;  // of a step, whatever it does
  double ssd_read = 0;    // bytes/s past the page cache; 0: no SSD rung
  double ssd_write = 0;   // bytes/s
  double ssd_latency_s = 0;
  std::int64_t memory_bytes = 0;  // what weights and KV may take

  bool has_ssd() const { return ssd_read > 0 && ssd_write > 0; }
};

// Estimates from public data sheets and published runs, for `simulate` only: never for scheduling.
std::span<const MachineProfile> known_machines();
std::optional<MachineProfile> find_machine(std::string_view name);

}  // namespace bodega::cost
