#include "cli/version.h"

namespace bodega::cli {

std::string version_text() { return "bodega " BODEGA_VERSION; }

}  // namespace bodega::cli
