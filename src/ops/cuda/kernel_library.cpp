#include "ops/cuda/kernel_library.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/hash.h"

namespace bodega::ops::cuda {
namespace {

namespace fs = std::filesystem;

fs::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return fs::path(cache) / "bodega" / "cuda";
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? fs::path(home) / ".cache" / "bodega" / "cuda"
                                          : fs::path();
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

// Under a name of its own first, so that another process never sees half a file. A cache that
// cannot be written costs seconds at the next start, nothing else.
void write_file(const fs::path& path, const std::string& bytes) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  const fs::path own = path.string() + "." + std::to_string(getpid());
  std::ofstream file(own, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file) {
    fs::rename(own, path, failed);
  } else {
    fs::remove(own, failed);
  }
}

}  // namespace

ModuleHandle KernelLibrary::module(const char* source, const std::string& definitions) {
  ModuleHandle& module = modules_[source + definitions];
  if (module != nullptr) return module;
  const int architecture = driver_.architecture();
  // No contraction: fma is written out where it is meant.
  std::vector<std::string> options{
      "--gpu-architecture=sm_" + std::to_string(architecture) + (architecture == 90 ? "a" : ""),
      "--std=c++17", "--fmad=false", "-w"};
  std::stringstream words(definitions);
  for (std::string word; words >> word;) options.push_back(word);
  const std::string text = std::string(kKernelSources.common) + source;
  Hasher128 hasher;
  hasher.add(std::string_view(text));
  for (const std::string& option : options) hasher.add(std::string_view(option));
  const fs::path folder = cache_folder();
  const fs::path path = folder / (to_hex(hasher.finish()) + ".cubin");
  std::string binary = folder.empty() ? std::string() : read_file(path);
  if (binary.empty()) {
    binary = driver_.compile(text, options);
    if (!folder.empty()) write_file(path, binary);
  }
  return module = driver_.load_module(binary);
}

Kernel KernelLibrary::get(const char* source, const std::string& definitions, const char* name,
                          unsigned shared) {
  const Kernel kernel{driver_.function(module(source, definitions), name), shared};
  if (shared > 48 * 1024) driver_.allow_shared(kernel.function, static_cast<int>(shared));
  return kernel;
}

}  // namespace bodega::ops::cuda
