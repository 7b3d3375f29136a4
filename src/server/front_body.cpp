#include "server/front_body.h"

#include "api/json.h"
#include "base/errors.h"

namespace bodega::server {

std::optional<std::string> model_in_body(const std::string& body) {
  const api::json::object object = api::parse_object(body);
  const api::json::value* const model = object.if_contains("model");
  if (model == nullptr || model->is_null()) return std::nullopt;
  if (!model->is_string()) {
    throw Error(ErrorKind::kInvalidRequest, "model must be a string.", "model");
  }
  return std::string(model->get_string().c_str(), model->get_string().size());
}

std::string with_model(const std::string& body, const std::string& model) {
  api::json::object object = api::parse_object(body);
  object["model"] = model;
  return api::to_text(object);
}

}  // namespace bodega::server
