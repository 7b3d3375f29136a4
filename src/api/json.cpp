#include "api/json.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <cstdlib>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/errors.h"

namespace bodega::api {
namespace {

// Builds the value as boost::json::parser does, and notices what that one lets pass: a second
// member of the same name.
class StrictHandler {
 public:
  static constexpr std::size_t max_array_size = -1;
  static constexpr std::size_t max_object_size = -1;
  static constexpr std::size_t max_string_size = -1;
  static constexpr std::size_t max_key_size = -1;

  using Code = boost::system::error_code;

  bool on_document_begin(Code& /*ec*/) {
    stack_.reset();
    return true;
  }
  bool on_document_end(Code& /*ec*/) { return true; }
  bool on_object_begin(Code& /*ec*/) {
    names_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t count, Code& /*ec*/) {
    stack_.push_object(count);
    names_.pop_back();
    return true;
  }
  bool on_array_begin(Code& /*ec*/) { return true; }
  bool on_array_end(std::size_t count, Code& /*ec*/) {
    stack_.push_array(count);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t /*total*/, Code& /*ec*/) {
    key_.append(part.data(), part.size());
    stack_.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, std::size_t /*total*/, Code& ec) {
    key_.append(part.data(), part.size());
    stack_.push_key(part);
    const bool is_new = names_.back().insert(key_).second;
    if (!is_new) {
      duplicate = key_;
      ec = json::error::syntax;
    }
    key_.clear();
    return is_new;
  }
  bool on_string_part(json::string_view part, std::size_t /*total*/, Code& /*ec*/) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, std::size_t /*total*/, Code& /*ec*/) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(json::string_view /*part*/, Code& /*ec*/) { return true; }
  bool on_int64(std::int64_t value, json::string_view /*part*/, Code& /*ec*/) {
    stack_.push_int64(value);
    return true;
  }
  bool on_uint64(std::uint64_t value, json::string_view /*part*/, Code& /*ec*/) {
    stack_.push_uint64(value);
    return true;
  }
  bool on_double(double value, json::string_view /*part*/, Code& /*ec*/) {
    stack_.push_double(value);
    return true;
  }
  bool on_bool(bool value, Code& /*ec*/) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(Code& /*ec*/) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view /*part*/, Code& /*ec*/) { return true; }
  bool on_comment(json::string_view /*part*/, Code& /*ec*/) { return true; }

  json::value take() { return stack_.release(); }

  std::string duplicate;

 private:
  json::value_stack stack_;
  std::vector<std::unordered_set<std::string>> names_;  // of the objects that are open
  std::string key_;
};

std::string complaint(boost::system::error_code code, std::size_t at) {
  if (code == json::error::too_deep) return fmt::format("nests deeper than {} levels", kJsonDepth);
  if (code == json::error::incomplete) return "ends before the JSON value is complete";
  if (code == json::error::extra_data)
    return fmt::format("goes on after the JSON value, at byte {}", at);
  return fmt::format("is not valid JSON: {} at byte {}", code.message(), at);
}

void write(const json::value& value, std::string& out);

void write_string(const json::string& text, std::string& out) { out += json::serialize(text); }

void write_double(double value, std::string& out) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(out), "{}", value);
  } else {
    out += "null";
  }
}

void write_array(const json::array& array, std::string& out) {
  out += '[';
  bool first = true;
  for (const json::value& item : array) {
    if (!first) out += ',';
    first = false;
    write(item, out);
  }
  out += ']';
}

void write_object(const json::object& object, std::string& out) {
  out += '{';
  bool first = true;
  for (const auto& member : object) {
    if (!first) out += ',';
    first = false;
    out += json::serialize(member.key());
    out += ':';
    write(member.value(), out);
  }
  out += '}';
}

void write(const json::value& value, std::string& out) {
  switch (value.kind()) {
    case json::kind::null:
      out += "null";
      break;
    case json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      break;
    case json::kind::int64:
      out += std::to_string(value.get_int64());
      break;
    case json::kind::uint64:
      out += std::to_string(value.get_uint64());
      break;
    case json::kind::double_:
      write_double(value.get_double(), out);
      break;
    case json::kind::string:
      write_string(value.get_string(), out);
      break;
    case json::kind::array:
      write_array(value.get_array(), out);
      break;
    case json::kind::object:
      write_object(value.get_object(), out);
      break;
  }
}

}  // namespace

json::value parse_json(std::string_view text, std::string_view what) {
  json::parse_options options;
  options.max_depth = kJsonDepth;
  json::basic_parser<StrictHandler> parser(options);
  boost::system::error_code code;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), code);
  if (!code && used < text.size()) code = json::error::extra_data;
  if (!code) return parser.handler().take();
  const std::string& duplicate = parser.handler().duplicate;
  if (!duplicate.empty()) {
    throw Error(ErrorKind::kInvalidRequest,
                fmt::format("{} has the member \"{}\" twice.", what, duplicate), duplicate);
  }
  throw Error(ErrorKind::kInvalidRequest, fmt::format("{} {}.", what, complaint(code, used)));
}

json::object parse_object(std::string_view text, std::string_view what) {
  json::value value = parse_json(text, what);
  if (!value.is_object()) {
    throw Error(ErrorKind::kInvalidRequest, fmt::format("{} must be a JSON object.", what));
  }
  return std::move(value.get_object());
}

std::string to_text(const json::value& value) {
  std::string out;
  write(value, out);
  return out;
}

double widen(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

int count_characters(std::string_view text) {
  int count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

}  // namespace bodega::api
