#include "base/folders.h"

#include "base/env.h"

namespace bodega {

std::string default_cache_folder() {
  if (const auto folder = env_string("XDG_CACHE_HOME")) return *folder + "/bodega";
  const auto home = env_string("HOME");
  if (!home) return {};
#ifdef __APPLE__
  return *home + "/Library/Caches/bodega";
#else
  return *home + "/.cache/bodega";
#endif
}

}  // namespace bodega
