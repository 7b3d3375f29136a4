#pragma once

#include <mlx/mlx.h>

#include <string>
#include <vector>

#include "ops/plan.h"

namespace bodega::ops {

// Largest difference from the twin, relative to the twin's largest value, that a kernel may show:
// fp16 inputs stay ten times below, a wrong kernel lies far above.
inline constexpr double kSelfCheckTolerance = 1e-2;

// Runs one record of the plan on small random matrices of the same format, heads of the same size
// and the same epilogue, for one, twelve and twenty-three rows, by the device's kernel and by its
// twin. Returns what is wrong; empty when they agree or the device has no kernel for the record.
std::string self_check(const Plan& plan, std::size_t index, mlx::core::Device device,
                       double tolerance = kSelfCheckTolerance);

// For every record that `has_kernel` marks; records alike are tried once.
std::vector<std::string> self_check_all(const Plan& plan, mlx::core::Device device,
                                        const std::vector<bool>& has_kernel);

}  // namespace bodega::ops
