#pragma once

#include <string>
#include <string_view>

#include "server/options.h"

namespace bodega::server {

inline constexpr std::string_view kDefaultModelId = "smollm2-135m-instruct";

// True for the default model's id, the name under which users know it.
bool is_default_model(std::string_view name);

// The file of the default model: $BODEGA_DEFAULT_MODEL, else share/bodega/models beside the
// program's folder, else where the build found it. Throws Error(kConfig) when it is nowhere.
std::string default_model_path();

// Fills in path and, where none was chosen, id.
void use_default_model(ModelOptions& options);

}  // namespace bodega::server
