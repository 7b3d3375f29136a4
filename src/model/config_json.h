#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bodega::model {

// Parses a whole JSON document; `file` names it in errors. Refuses broken JSON, invalid UTF-8,
// nesting over 64 and objects with the same key twice (JSON lets readers pick either value).
boost::json::value parse_json(std::string_view text, const std::string& file);

// Reads fields of one object with errors that name file and field. Null counts as absent.
class JsonFields {
 public:
  // `value` must be an object and outlive this; `path` leads to it: "" or "rope_scaling.".
  JsonFields(const boost::json::value& value, std::string file, std::string path = "");

  const boost::json::value* find(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;  // 8 and 8.0, not true
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::optional<JsonFields> object(std::string_view key) const;

  int size(std::string_view key) const;  // required, 0 to 2^31 - 1
  int size_or(std::string_view key, int otherwise) const;

  const boost::json::object& json() const { return *object_; }
  const std::string& file() const { return file_; }
  [[noreturn]] void fail(std::string_view key, const std::string& why) const;

 private:
  const boost::json::object* object_;
  std::string file_;
  std::string path_;
};

std::optional<std::int64_t> json_integer(const boost::json::value& value);

}  // namespace bodega::model
