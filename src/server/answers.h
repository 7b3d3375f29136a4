#pragma once

#include <boost/json/value.hpp>
#include <string>

#include "base/errors.h"
#include "http/server.h"
#include "server/options.h"

namespace bodega::server {

// Whole answers of an exchange that has not begun, for the front and for workers.
void respond_error(http::Exchange& exchange, const Error& error);
void respond_json(http::Exchange& exchange, const boost::json::value& value, int status = 200);

// 405, with the methods that the path allows.
void respond_method_not_allowed(http::Exchange& exchange, const std::string& path,
                                const std::string& allow);

// http::ErrorRenderer of the wire contract.
http::Response render_http_failure(int status, const std::string& message);

// http::Limits of the user's.
http::Limits limits_from(const LimitOptions& options);

}  // namespace bodega::server
