#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/disk/measure_disk.h"
#include "engine/probe.h"

namespace bodega::cli {

// A kernel may differ from its twin by rounding of its int16 activations, not by more.
inline constexpr double kWorstRelativeError = 3e-4;

// What `doctor` found out about this machine.
struct MachineReport {
  int threads = 0;
  int usable_cores = 0;
  std::optional<double> cgroup_cores;
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_bytes = 0;
  double bandwidth_gb_s = 0;  // reading memory, nothing else
  std::string model;
  engine::Probe probe;
  std::optional<engine::DiskSpeed> disk;  // of the cache folder

  double decode_gb_s() const;  // weights read by a one-row step
  double gflops() const;       // of a many-rows step
  double ridge_rows() const;   // rows at which arithmetic takes as long as reading the weights
  bool healthy() const;        // every kernel agrees with its twin
  std::vector<std::string> advice() const;  // what is slow here and why; one sentence each
};

std::string to_text(const MachineReport& report);
boost::json::object to_json(const MachineReport& report);

}  // namespace bodega::cli
