#pragma once

#include <string>

#include "server/options.h"

namespace bodega::server {

// Reads config.yaml over `options`; flags are to be applied after it. `server:` has the server's
// fields and `limits:`, `models:` is a list of the models' fields. Throws Error(kConfig) with file
// and line: for what is no YAML, an unknown or repeated key, a value that is not allowed.
void load_config_file(const std::string& path, ServeOptions& options);

// The same for a text; `name` stands in errors.
void load_config_text(const std::string& text, const std::string& name, ServeOptions& options);

}  // namespace bodega::server
