#include "ops/cuda/mlx_bridge.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "base/log.h"

namespace bodega::ops::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> candidates() {
  const char* const name = "libbodega_cuda.so";
  std::vector<fs::path> paths;
  if (const char* given = std::getenv("BODEGA_CUDA_PLUGIN")) paths.emplace_back(given);
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    paths.push_back(program.parent_path() / name);
    paths.push_back(program.parent_path().parent_path() / "lib" / name);
  }
  return paths;
}

const MlxBridge* load() {
  std::error_code failed;
  for (const fs::path& path : candidates()) {
    if (!fs::exists(path, failed)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      log_warn("The CUDA plugin does not load", {{"why", dlerror()}});
      continue;
    }
    const auto* bridge = static_cast<const MlxBridge*>(dlsym(library, MlxBridge::kSymbol));
    if (bridge != nullptr && bridge->mlx_version == MlxBridge::kVersion) return bridge;
    log_warn("The CUDA plugin was built for another version of MLX", {{"path", path.string()}});
  }
  return nullptr;
}

}  // namespace

const MlxBridge* find_bridge() {
  static const MlxBridge* const bridge = load();
  return bridge;
}

}  // namespace bodega::ops::cuda
