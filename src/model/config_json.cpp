#include "model/config_json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "model/tensor_entry.h"

namespace bodega::model {
namespace {

namespace json = boost::json;
using json::error_code;
using json::string_view;

constexpr std::size_t kMaxDepth = 64;

// A parser's handler that only remembers which keys each open object has had.
struct DuplicateFinder {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  std::vector<std::set<std::string, std::less<>>> objects;
  std::string key;
  std::string duplicate;

  bool on_object_begin(error_code&) {
    objects.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, error_code&) {
    objects.pop_back();
    return true;
  }
  bool on_key_part(string_view part, std::size_t, error_code&) {
    key.append(part.data(), part.size());
    return true;
  }
  bool on_key(string_view part, std::size_t, error_code& error) {
    key.append(part.data(), part.size());
    const bool fresh = objects.back().insert(key).second;
    if (!fresh) {
      duplicate = key;
      error = json::error::syntax;
    }
    key.clear();
    return fresh;
  }
  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t, error_code&) { return true; }
  bool on_string_part(string_view, std::size_t, error_code&) { return true; }
  bool on_string(string_view, std::size_t, error_code&) { return true; }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t, string_view, error_code&) { return true; }
  bool on_uint64(std::uint64_t, string_view, error_code&) { return true; }
  bool on_double(double, string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }
};

}  // namespace

json::value parse_json(std::string_view text, const std::string& file) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  const string_view view(text.data(), text.size());
  json::basic_parser<DuplicateFinder> finder(options);
  error_code ignored;
  finder.write_some(false, view.data(), view.size(), ignored);
  if (!finder.handler().duplicate.empty()) {
    fail_file(file, "'" + printable(finder.handler().duplicate) + "' appears twice.");
  }
  error_code error;
  json::value value = json::parse(view, error, {}, options);
  if (error) fail_file(file, "is not valid JSON: " + error.message() + ".");
  return value;
}

std::optional<std::int64_t> json_integer(const json::value& value) {
  if (const auto* number = value.if_int64()) return *number;
  const auto* number = value.if_double();
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (number == nullptr || std::abs(*number) > kExact || std::trunc(*number) != *number) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

JsonFields::JsonFields(const json::value& value, std::string file, std::string path)
    : object_(value.if_object()), file_(std::move(file)), path_(std::move(path)) {
  if (object_ != nullptr) return;
  const std::string what = path_.empty() ? "the document" : "'" + path_ + "'";
  fail_file(file_, what + " is not an object.");
}

void JsonFields::fail(std::string_view key, const std::string& why) const {
  fail_file(file_, "'" + path_ + printable(key) + "' " + why);
}

const json::value* JsonFields::find(std::string_view key) const {
  const auto it = object_->find(string_view(key.data(), key.size()));
  return it == object_->end() || it->value().is_null() ? nullptr : &it->value();
}

std::optional<std::int64_t> JsonFields::integer(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto result = json_integer(*value);
  if (!result) fail(key, "is not an integer.");
  return result;
}

std::optional<double> JsonFields::number(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  error_code error;
  const auto result = value->to_number<double>(error);
  if (error || !std::isfinite(result)) fail(key, "is not a number.");
  return result;
}

std::optional<bool> JsonFields::flag(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) fail(key, "is neither true nor false.");
  return value->get_bool();
}

std::optional<std::string> JsonFields::text(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, "is not a string.");
  return std::string(value->get_string());
}

std::optional<JsonFields> JsonFields::object(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return JsonFields(*value, file_, path_ + std::string(key) + ".");
}

int JsonFields::size(std::string_view key) const {
  const auto value = integer(key);
  if (!value) fail(key, "is missing.");
  if (*value < 0 || *value > std::numeric_limits<int>::max()) fail(key, "is out of range.");
  return static_cast<int>(*value);
}

int JsonFields::size_or(std::string_view key, int otherwise) const {
  return find(key) == nullptr ? otherwise : size(key);
}

}  // namespace bodega::model
