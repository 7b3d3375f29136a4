#include "cost/machine_profile.h"

#include <array>

namespace bodega::cost {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kMicro = 1e-6;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
// Two dies read memory at 1.6 to 1.8 times the rate of one, not twice.
constexpr double kCrossDie = 1.7;

}  // namespace

std::span<const MachineProfile> known_machines() {
  static const std::array<MachineProfile, 5> machines = {{
      {"m1-max", 0.85 * 400 * kGiga, 0.75 * 10.4 * kTera, 400 * kMicro, 5.0 * kGiga, 4.0 * kGiga,
       80 * kMicro, 48 * kGiB},
      {"m4-max", 0.85 * 546 * kGiga, 0.75 * 18.4 * kTera, 300 * kMicro, 6.5 * kGiga, 6.0 * kGiga,
       70 * kMicro, 96 * kGiB},
      {"m3-ultra", 0.85 * 410 * kCrossDie * kGiga, 0.75 * 14.2 * kCrossDie * kTera, 400 * kMicro,
       6.5 * kGiga, 6.0 * kGiga, 70 * kMicro, 384 * kGiB},
      {"h200", 0.85 * 4800 * kGiga, 0.5 * 989 * kTera, 250 * kMicro, 6.0 * kGiga, 4.0 * kGiga,
       90 * kMicro, 128 * kGiB},
      {"two-cores", 30 * kGiga, 120 * kGiga, 150 * kMicro, 1.0 * kGiga, 0.5 * kGiga, 200 * kMicro,
       4 * kGiB},
  }};
  return machines;
}

std::optional<MachineProfile> find_machine(std::string_view name) {
  for (const MachineProfile& machine : known_machines()) {
    if (machine.name == name) return machine;
  }
  return std::nullopt;
}

}  // namespace bodega::cost
