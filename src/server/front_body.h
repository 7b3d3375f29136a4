#pragma once

#include <optional>
#include <string>

namespace bodega::server {

// The front's one look into a request's body: it has to be a JSON object, and names its model.
// Throws Error(kInvalidRequest).
std::optional<std::string> model_in_body(const std::string& body);

// The same body with another model name. `body` has passed model_in_body().
std::string with_model(const std::string& body, const std::string& model);

}  // namespace bodega::server
