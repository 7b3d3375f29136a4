#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "api/json.h"

namespace bodega::api {

// Throws Error(kInvalidRequest) whose message begins with the member's path.
[[noreturn]] void refuse(const std::string& path, std::string_view complaint);

// The members of one JSON object, read by name. Null counts as absent. A wrong type throws an error
// that names the path. Members that nobody asked for are the unknown ones.
class Fields {
 public:
  // `path` is the place of the object in the body, "" for the body itself. The object must outlive
  // this.
  explicit Fields(const json::object& object, std::string path = {});

  const json::value* find(std::string_view name);  // nullptr when absent or null

  std::optional<double> number(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name);  // 3.0 is an integer, 3.5 is not
  std::optional<bool> boolean(std::string_view name);
  std::optional<std::string> string(std::string_view name);
  const json::object* object(std::string_view name);
  const json::array* array(std::string_view name);

  std::string path(std::string_view name) const;
  std::vector<std::string> unknown() const;  // paths, in the order of the body

 private:
  const json::object& object_;
  std::string path_;
  std::unordered_set<std::string_view> known_;
};

// Readers of a single value, for elements of arrays.
double as_number(const json::value& value, const std::string& path);
std::int64_t as_integer(const json::value& value, const std::string& path);
std::string as_string(const json::value& value, const std::string& path);
const json::object& as_object(const json::value& value, const std::string& path);
const json::array& as_array(const json::value& value, const std::string& path);

std::string element(const std::string& path, std::size_t index);  // "messages[2]"

}  // namespace bodega::api
