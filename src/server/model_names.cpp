#include "server/model_names.h"

#include "base/errors.h"

namespace bodega::server {
namespace {

constexpr const char* kDefault = "default";

bool is_default(const std::string& name) { return name.empty() || name == kDefault; }

}  // namespace

std::string model_id_of(const ModelOptions& options) {
  if (!options.model_id.empty()) return options.model_id;
  return options.model_path.empty() ? "smollm2-135m-instruct" : options.model_path;
}

std::optional<std::string> ModelNames::alias_of(const std::string& name) const {
  const auto exact = aliases_.find(name);
  if (exact != aliases_.end()) return exact->second;
  std::optional<std::string> best;
  std::size_t longest = 0;
  for (const auto& [pattern, id] : aliases_) {
    if (pattern.empty() || pattern.back() != '*') continue;
    const std::string prefix = pattern.substr(0, pattern.size() - 1);
    if (!name.starts_with(prefix) || (best && prefix.size() < longest)) continue;
    best = id;
    longest = prefix.size();
  }
  return best;
}

registry::Worker& ModelNames::resolve(const registry::Registry& registry,
                                      const std::optional<std::string>& name) const {
  registry::Worker* const fallback = registry.default_model();
  if (fallback == nullptr) {
    Error error(ErrorKind::kUnavailable, "No model is loaded.");
    error.retry_after_s = 10;
    throw error;
  }
  if (!name || is_default(*name)) return *fallback;
  if (registry::Worker* const worker = registry.find(*name)) return *worker;
  if (const auto alias = alias_of(*name)) {
    if (is_default(*alias)) return *fallback;
    if (registry::Worker* const worker = registry.find(*alias)) return *worker;
  }
  throw Error(ErrorKind::kModelNotFound,
              "The model \"" + *name + "\" is not loaded. GET /v1/models lists those that are.",
              "model");
}

}  // namespace bodega::server
