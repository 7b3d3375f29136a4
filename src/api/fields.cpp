#include "api/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/errors.h"

namespace bodega::api {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

[[noreturn]] void refuse_type(const std::string& path, std::string_view wanted) {
  refuse(path, fmt::format("must be {}", wanted));
}

}  // namespace

void refuse(const std::string& path, std::string_view complaint) {
  throw Error(ErrorKind::kInvalidRequest, fmt::format("{} {}.", path, complaint), path);
}

std::string element(const std::string& path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

double as_number(const json::value& value, const std::string& path) {
  if (!value.is_number()) refuse_type(path, "a number");
  const double number = value.to_number<double>();
  if (!std::isfinite(number)) refuse_type(path, "a finite number");
  return number;
}

std::int64_t as_integer(const json::value& value, const std::string& path) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_double()) {
    const double number = value.get_double();
    const bool fits = number >= -kTwoTo63 && number < kTwoTo63;
    if (fits && std::trunc(number) == number) return static_cast<std::int64_t>(number);
  }
  if (value.is_uint64()) refuse(path, "is too large");
  refuse_type(path, "an integer");
}

std::string as_string(const json::value& value, const std::string& path) {
  if (!value.is_string()) refuse_type(path, "a string");
  return std::string(value.get_string());
}

const json::object& as_object(const json::value& value, const std::string& path) {
  if (!value.is_object()) refuse_type(path, "an object");
  return value.get_object();
}

const json::array& as_array(const json::value& value, const std::string& path) {
  if (!value.is_array()) refuse_type(path, "an array");
  return value.get_array();
}

Fields::Fields(const json::object& object, std::string path)
    : object_(object), path_(std::move(path)) {}

const json::value* Fields::find(std::string_view name) {
  const auto member = object_.find(name);
  if (member == object_.end()) return nullptr;
  known_.insert(std::string_view(member->key().data(), member->key().size()));
  return member->value().is_null() ? nullptr : &member->value();
}

std::optional<double> Fields::number(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  return as_number(*value, path(name));
}

std::optional<std::int64_t> Fields::integer(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  return as_integer(*value, path(name));
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) refuse_type(path(name), "true or false");
  return value->get_bool();
}

std::optional<std::string> Fields::string(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  return as_string(*value, path(name));
}

const json::object* Fields::object(std::string_view name) {
  const json::value* value = find(name);
  return value == nullptr ? nullptr : &as_object(*value, path(name));
}

const json::array* Fields::array(std::string_view name) {
  const json::value* value = find(name);
  return value == nullptr ? nullptr : &as_array(*value, path(name));
}

std::string Fields::path(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

std::vector<std::string> Fields::unknown() const {
  std::vector<std::string> names;
  for (const auto& member : object_) {
    const std::string_view key(member.key().data(), member.key().size());
    const bool absent = member.value().is_null();  // the same as not being there
    if (!absent && !known_.contains(key)) names.push_back(path(key));
  }
  return names;
}

}  // namespace bodega::api
