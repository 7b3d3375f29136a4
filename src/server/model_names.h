#pragma once

#include <optional>
#include <string>

#include "registry/registry.h"
#include "server/options.h"

namespace bodega::server {

// The id that a model has when the user gave it none.
std::string model_id_of(const ModelOptions& options);

// Finds the model that a request names. Only names of what is loaded and of aliases count: nothing
// is looked up elsewhere.
class ModelNames {
 public:
  explicit ModelNames(StringMap aliases) : aliases_(std::move(aliases)) {}

  // No name, "" and "default" mean the default model. Throws Error: kModelNotFound, or kUnavailable
  // when nothing is loaded at all.
  registry::Worker& resolve(const registry::Registry& registry,
                            const std::optional<std::string>& name) const;

 private:
  std::optional<std::string> alias_of(const std::string& name) const;

  StringMap aliases_;
};

}  // namespace bodega::server
