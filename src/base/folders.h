#pragma once

#include <string>

namespace bodega {

// The user's folder for what may be lost and made again: $XDG_CACHE_HOME/bodega, or the system's
// usual place under $HOME; "" when neither is set. Not created here.
std::string default_cache_folder();

}  // namespace bodega
