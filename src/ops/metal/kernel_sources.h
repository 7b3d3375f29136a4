#pragma once

#include <string_view>

namespace bodega::ops::metal {

// The text of kernels/<file>.metal or kernels/params.h, embedded at build time; empty when there is
// no such file.
std::string_view kernel_source(std::string_view file);

}  // namespace bodega::ops::metal
