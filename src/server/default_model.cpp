#include "server/default_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/env.h"
#include "base/errors.h"
#include "registry/process.h"

namespace bodega::server {
namespace {

namespace fs = std::filesystem;

// The first GGUF file of a folder by name, "" when there is none.
std::string first_gguf(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".gguf") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files.empty() ? std::string() : files.front();
}

}  // namespace

bool is_default_model(std::string_view name) { return name == kDefaultModelId; }

std::string default_model_path() {
  if (const std::optional<std::string> chosen = env_string("BODEGA_DEFAULT_MODEL")) return *chosen;
  const fs::path program(registry::own_program());
  const std::string installed =
      first_gguf(program.parent_path().parent_path() / "share" / "bodega" / "models");
  if (!installed.empty()) return installed;
  std::error_code ignored;
  if (fs::exists(BODEGA_BUILT_DEFAULT_MODEL, ignored)) return BODEGA_BUILT_DEFAULT_MODEL;
  throw Error(
      ErrorKind::kConfig,
      "The default model is not here. Name a model, or set BODEGA_DEFAULT_MODEL to its file.");
}

void use_default_model(ModelOptions& options) {
  options.model_path = default_model_path();
  if (options.model_id.empty()) options.model_id = kDefaultModelId;
}

}  // namespace bodega::server
