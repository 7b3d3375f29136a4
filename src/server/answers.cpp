#include "server/answers.h"

#include <utility>

#include "api/errors.h"
#include "api/json.h"

namespace bodega::server {
namespace {

http::Response to_response(api::RenderedError rendered) {
  return {rendered.status, std::move(rendered.headers), std::move(rendered.body)};
}

}  // namespace

void respond_error(http::Exchange& exchange, const Error& error) {
  exchange.respond(to_response(api::render_error(error)));
}

void respond_json(http::Exchange& exchange, const boost::json::value& value, int status) {
  exchange.respond({status, {{"content-type", "application/json"}}, api::to_text(value)});
}

void respond_method_not_allowed(http::Exchange& exchange, const std::string& path,
                                const std::string& allow) {
  http::Response response = to_response(
      api::render_error(Error(ErrorKind::kMethodNotAllowed, path + " allows " + allow + ".")));
  response.headers.emplace_back("allow", allow);
  exchange.respond(std::move(response));
}

http::Response render_http_failure(int status, const std::string& message) {
  return to_response(api::render_http_failure(status, message));
}

http::Limits limits_from(const LimitOptions& options) {
  http::Limits limits;
  limits.header_bytes = options.header_bytes;
  limits.body_bytes = options.body_bytes;
  limits.output_bytes = options.output_bytes;
  limits.connections = options.connections;
  limits.read_deadline = std::chrono::seconds(options.read_deadline);
  limits.idle_timeout = std::chrono::seconds(options.idle_timeout);
  limits.write_timeout = std::chrono::seconds(options.write_timeout);
  return limits;
}

}  // namespace bodega::server
