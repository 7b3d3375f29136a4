#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

namespace bodega::api {

namespace json = boost::json;

inline constexpr std::size_t kJsonDepth = 64;

// Parses one JSON text strictly: invalid UTF-8, lone surrogates, duplicate keys, nesting beyond
// kJsonDepth and anything after the value throw Error(kInvalidRequest), which names `what` ("the
// request body"). Key order is kept.
json::value parse_json(std::string_view text, std::string_view what = "The request body");

// The same, and the value has to be an object.
json::object parse_object(std::string_view text, std::string_view what = "The request body");

// Compact JSON. Unlike boost::json::serialize it writes the shortest decimal of a double (0.25, not
// 2.5E-1) and null for what JSON cannot say (infinity, NaN).
std::string to_text(const json::value& value);

// A double whose shortest decimal is the float's, so that -0.1F is printed -0.1.
double widen(float value);

// Characters of well-formed UTF-8 text.
int count_characters(std::string_view text);

}  // namespace bodega::api
