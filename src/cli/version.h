#pragma once

#include <string>

namespace bodega::cli {

std::string version_text();  // "bodega 0.1.0"

}  // namespace bodega::cli
