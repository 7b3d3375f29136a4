#include "text/tool_values.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cctype>
#include <cmath>

namespace bodega::text {
namespace {

namespace json = boost::json;

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kDepth = 64;

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(kBlanks, at), text.size());
}

// One past the string that begins at `at`; npos while it is unfinished.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// One past the value that begins at `at`, in text that is known to be JSON.
std::size_t value_end(std::string_view text, std::size_t at) {
  if (text[at] == '"') return string_end(text, at);
  if (text[at] == '{' || text[at] == '[') return at + json_extent(text.substr(at)).size;
  return std::min(text.find_first_of(",]} \t\r\n", at), text.size());
}

json::parse_options options() {
  json::parse_options options;
  options.max_depth = kDepth;
  return options;
}

std::optional<json::value> parse(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error, {}, options());
  if (error) return std::nullopt;
  return value;
}

std::string escape_breaks(std::string_view text) {
  std::string out;
  bool inside = false;
  bool escaped = false;
  for (const char c : text) {
    const bool bare = inside && !escaped;
    if (inside && c == '\n') {
      out += escaped ? "n" : "\\n";
    } else if (inside && c == '\r') {
      out += escaped ? "r" : "\\r";
    } else if (inside && c == '\t') {
      out += escaped ? "t" : "\\t";
    } else {
      out += c;
    }
    if (c == '"' && !escaped) inside = !inside;
    escaped = bare && c == '\\';
  }
  return out;
}

std::string unquoted(std::string_view text) {
  const std::optional<json::value> value = parse(text);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::optional<std::string> arguments_of(std::string_view value) {
  if (value.starts_with('{')) return std::string(value);
  if (value == "null") return "{}";
  if (!value.starts_with('"')) return std::nullopt;
  const std::string text = unquoted(value);
  if (text.find_first_not_of(kBlanks) == std::string::npos) return "{}";
  const std::size_t begin = skip_blanks(text, 0);
  if (text[begin] != '{') return std::nullopt;
  return as_json(text);
}

// The last member of that name, as parsers of JSON have it; "" where there is none.
std::string_view member_of(const RawMembers& members, std::string_view name) {
  std::string_view found;
  for (const auto& [key, value] : members) {
    if (key == name) found = value;
  }
  return found;
}

std::optional<ToolCall> named_call(const RawMembers& members) {
  ToolCall call;
  call.name = unquoted(member_of(members, "name"));
  if (call.name.empty()) return std::nullopt;
  std::string_view given = member_of(members, "arguments");
  if (given.empty()) given = member_of(members, "parameters");
  std::optional<std::string> arguments = given.empty() ? "{}" : arguments_of(given);
  if (!arguments) return std::nullopt;
  call.arguments = std::move(*arguments);
  return call;
}

}  // namespace

Extent json_extent(std::string_view text) {
  if (text.empty()) return {Found::kMore, 0};
  if (text[0] != '{' && text[0] != '[') return {Found::kNo, 0};
  std::string open;  // the closing brackets that are to come
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const std::size_t end = string_end(text, i);
      if (end == std::string_view::npos) return {Found::kMore, 0};
      i = end - 1;
    }
    if (c == '{') open += '}';
    if (c == '[') open += ']';
    if (open.size() > kDepth) return {Found::kNo, 0};
    if (c != '}' && c != ']') continue;
    if (open.back() != c) return {Found::kNo, 0};
    open.pop_back();
    if (open.empty()) return {Found::kDone, i + 1};
  }
  return {Found::kMore, 0};
}

std::optional<std::string> as_json(std::string_view text) {
  if (parse(text)) return std::string(text);
  std::string escaped = escape_breaks(text);
  if (parse(escaped)) return escaped;
  return std::nullopt;
}

RawMembers members_of(std::string_view object) {
  RawMembers members;
  std::size_t at = skip_blanks(object, 1);
  while (at < object.size() && object[at] == '"') {
    const std::size_t key_end = string_end(object, at);
    std::string key = unquoted(object.substr(at, key_end - at));
    const std::size_t value = skip_blanks(object, skip_blanks(object, key_end) + 1);
    const std::size_t end = value_end(object, value);
    members.emplace_back(std::move(key), object.substr(value, end - value));
    at = skip_blanks(object, end);
    if (at < object.size() && object[at] == ',') at = skip_blanks(object, at + 1);
  }
  return members;
}

std::vector<std::string_view> elements_of(std::string_view array) {
  std::vector<std::string_view> elements;
  std::size_t at = skip_blanks(array, 1);
  while (at < array.size() && array[at] != ']') {
    const std::size_t end = value_end(array, at);
    elements.push_back(array.substr(at, end - at));
    at = skip_blanks(array, end);
    if (at < array.size() && array[at] == ',') at = skip_blanks(array, at + 1);
  }
  return elements;
}

std::optional<ToolCall> call_of_json(std::string_view object) {
  const std::optional<std::string> text = as_json(object);
  if (!text) return std::nullopt;
  const RawMembers members = members_of(*text);
  const std::string_view id = member_of(members, "id");
  const std::string_view inner = member_of(members, "function");
  std::optional<ToolCall> call;
  if (inner.starts_with('{')) {
    call = call_of_json(inner);
  } else {
    call = named_call(members);
  }
  if (call && id.starts_with('"')) call->id = unquoted(id);
  return call;
}

bool may_be_call(std::string_view object_begin) {
  constexpr auto kKeys = std::to_array<std::string_view>(
      {"\"name\"", "\"type\"", "\"function\"", "\"id\"", "\"arguments\"", "\"parameters\""});
  const std::string_view key = object_begin.substr(skip_blanks(object_begin, 1));
  return std::any_of(kKeys.begin(), kKeys.end(), [&](std::string_view wanted) {
    return key.starts_with(wanted) || wanted.starts_with(key);
  });
}

std::string quoted(std::string_view text) {
  return json::serialize(json::value(json::string(text)));
}

std::optional<std::string> json_string(std::string_view literal) {
  const std::optional<json::value> value = parse(literal);
  if (!value || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

const ToolDeclaration* find_tool(const ToolDeclarations& declared, std::string_view name) {
  const auto found = std::find_if(declared.begin(), declared.end(),
                                  [&](const ToolDeclaration& tool) { return tool.name == name; });
  return found == declared.end() ? nullptr : &*found;
}

namespace {

// The types that a schema allows at its top; none where it does not say.
void collect_types(const json::value& schema, std::vector<std::string>& types, int depth = 0) {
  const json::object* object = schema.if_object();
  if (object == nullptr || depth > 8) return;
  if (const json::value* type = object->if_contains("type")) {
    if (type->is_string()) types.emplace_back(type->get_string());
    if (type->is_array()) {
      for (const json::value& one : type->get_array()) {
        if (one.is_string()) types.emplace_back(one.get_string());
      }
    }
  }
  if (const json::value* values = object->if_contains("enum"); values != nullptr) {
    if (const json::array* list = values->if_array(); list != nullptr && types.empty()) {
      for (const json::value& one : *list) {
        if (one.is_string()) types.emplace_back("string");
      }
    }
  }
  for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
    const json::value* list = object->if_contains(keyword);
    if (list == nullptr || !list->is_array()) continue;
    for (const json::value& one : list->get_array()) collect_types(one, types, depth + 1);
  }
}

bool is_of(const json::value& value, std::string_view type) {
  if (type == "integer") {
    const bool whole = value.is_double() && std::trunc(value.get_double()) == value.get_double();
    return value.is_int64() || value.is_uint64() || whole;
  }
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return false;
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = skip_blanks(text, 0);
  const std::size_t last = text.find_last_not_of(kBlanks);
  return last == std::string_view::npos ? std::string()
                                        : std::string(text.substr(begin, last + 1 - begin));
}

// Python writes True, False and None.
std::string as_literal(std::string text) {
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "true" || lower == "false" || lower == "null") return lower;
  if (lower == "none") return "null";
  return text;
}

std::string typed(std::string_view value, const json::value* schema) {
  std::vector<std::string> types;
  if (schema != nullptr) collect_types(*schema, types);
  const bool texts = std::find(types.begin(), types.end(), "string") != types.end();
  std::string literal = as_literal(trimmed(value));
  const std::optional<json::value> parsed = parse(literal);
  if (types.empty()) {
    // Nothing is said of it: structures and words of JSON are taken as such.
    const bool plain = !parsed || parsed->is_string();
    return plain ? quoted(value) : literal;
  }
  for (const std::string& type : types) {
    // Where text is allowed too, only null is certain not to be meant as text.
    if (parsed && is_of(*parsed, type) && (!texts || type == "null")) return literal;
  }
  if (!texts) {
    // A container whose strings hold bare line breaks.
    const std::optional<std::string> repaired = as_json(literal);
    if (repaired) {
      const std::optional<json::value> again = parse(*repaired);
      for (const std::string& type : types) {
        if (again && is_of(*again, type)) return *repaired;
      }
    }
  }
  return quoted(value);
}

}  // namespace

void BareArguments::add(std::string_view name, std::string_view value) {
  const json::value* schema = nullptr;
  if (tool_ != nullptr) {
    const json::value* properties = tool_->parameters.if_contains("properties");
    if (properties != nullptr && properties->is_object()) {
      schema = properties->get_object().if_contains(name);
    }
  }
  add_json(name, typed(value, schema));
}

void BareArguments::add_json(std::string_view name, std::string json) {
  for (auto& [known, value] : values_) {
    if (known != name) continue;
    value = std::move(json);
    return;
  }
  values_.emplace_back(name, std::move(json));
}

std::string BareArguments::text() const {
  std::string text = "{";
  for (const auto& [name, value] : values_) {
    if (text.size() > 1) text += ", ";
    text.append(quoted(name)).append(": ").append(value);
  }
  return text += "}";
}

}  // namespace bodega::text
