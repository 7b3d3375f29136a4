#include "api/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/errors.h"

namespace bodega::api {
namespace {

constexpr auto kRoles =
    std::to_array<std::string_view>({"system", "developer", "user", "assistant", "tool"});

std::string read_role(Fields& fields) {
  const std::optional<std::string> role = fields.string("role");
  if (role && std::find(kRoles.begin(), kRoles.end(), *role) != kRoles.end()) return *role;
  refuse(fields.path("role"), fmt::format("must be one of {}", fmt::join(kRoles, ", ")));
}

std::string read_part(const json::value& value, const std::string& path, const ModelLimits& limits,
                      std::vector<std::string>& warnings) {
  Fields part(as_object(value, path), path);
  const std::optional<std::string> type = part.string("type");
  if (!type) refuse(part.path("type"), "is missing");
  if (*type != "text") {
    refuse(part.path("type"),
           fmt::format("is \"{}\", but this model reads only parts of type \"text\"", *type));
  }
  const std::optional<std::string> text = part.string("text");
  if (!text) refuse(part.path("text"), "is missing");
  note_unknown_fields(part, limits, warnings);
  return *text;
}

std::string read_content(Fields& fields, const ModelLimits& limits,
                         std::vector<std::string>& warnings) {
  const json::value* content = fields.find("content");
  if (content == nullptr) return {};
  if (content->is_string()) return std::string(content->get_string());
  const std::string path = fields.path("content");
  if (!content->is_array()) refuse(path, "must be a string, an array of parts, or null");
  std::string text;
  const json::array& parts = content->get_array();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += read_part(parts[i], element(path, i), limits, warnings);
  }
  return text;
}

// JSON text on the wire, an object for templates that walk its pairs. "" and null mean no
// arguments.
json::object read_arguments(Fields& function) {
  const json::value* arguments = function.find("arguments");
  if (arguments == nullptr) return {};
  if (arguments->is_object()) return arguments->get_object();
  const std::string path = function.path("arguments");
  if (!arguments->is_string()) refuse(path, "must be a string of JSON");
  const json::string& text = arguments->get_string();
  if (text.find_first_not_of(" \t\r\n") == json::string::npos) return {};
  json::value parsed;
  try {
    parsed = parse_json(text, path);
  } catch (const Error& error) {
    throw Error(error.kind(), error.what(), path);
  }
  if (parsed.is_null()) return {};
  if (!parsed.is_object()) refuse(path, "must be the JSON text of an object");
  return std::move(parsed.get_object());
}

json::object read_tool_call(const json::value& value, const std::string& path,
                            const ModelLimits& limits, std::vector<std::string>& warnings) {
  Fields call(as_object(value, path), path);
  if (call.string("type").value_or("function") != "function") {
    refuse(call.path("type"), "must be \"function\"");
  }
  const json::object* given = call.object("function");
  if (given == nullptr) refuse(call.path("function"), "is missing");
  Fields function(*given, call.path("function"));
  const std::optional<std::string> name = function.string("name");
  if (!name) refuse(function.path("name"), "is missing");

  json::object out;
  if (const std::optional<std::string> id = call.string("id")) out["id"] = *id;
  out["type"] = "function";
  out["function"] = json::object{{"name", *name}, {"arguments", read_arguments(function)}};
  call.find("index");  // clients that send back streamed fragments leave it in
  note_unknown_fields(function, limits, warnings);
  note_unknown_fields(call, limits, warnings);
  return out;
}

json::array read_tool_calls(Fields& fields, const ModelLimits& limits,
                            std::vector<std::string>& warnings) {
  json::array out;
  const json::array* calls = fields.array("tool_calls");
  if (calls == nullptr) return out;
  for (std::size_t i = 0; i < calls->size(); ++i) {
    out.push_back(
        read_tool_call((*calls)[i], element(fields.path("tool_calls"), i), limits, warnings));
  }
  return out;
}

json::object read_message(const json::value& value, const std::string& path,
                          const ModelLimits& limits, std::vector<std::string>& warnings) {
  Fields fields(as_object(value, path), path);
  const std::string role = read_role(fields);
  json::object out{{"role", role}, {"content", read_content(fields, limits, warnings)}};
  for (const std::string_view name : {"name", "tool_call_id", "reasoning_content"}) {
    if (const std::optional<std::string> text = fields.string(name)) out[name] = *text;
  }
  json::array calls = read_tool_calls(fields, limits, warnings);
  if (!calls.empty()) {
    if (role != "assistant") refuse(fields.path("tool_calls"), "belongs to role assistant only");
    out["tool_calls"] = std::move(calls);
  }
  note_unknown_fields(fields, limits, warnings);
  return out;
}

void guard_value(json::value& value, const Guard& guard);

void guard_object(json::object& object, const Guard& guard) {
  json::object guarded;
  guarded.reserve(object.size());
  for (auto& member : object) {
    guard_value(member.value(), guard);
    guarded[guard(member.key())] = std::move(member.value());
  }
  object = std::move(guarded);
}

void guard_value(json::value& value, const Guard& guard) {
  if (value.is_string()) {
    value = guard(value.get_string());
  } else if (value.is_array()) {
    for (json::value& item : value.get_array()) guard_value(item, guard);
  } else if (value.is_object()) {
    guard_object(value.get_object(), guard);
  }
}

}  // namespace

json::array read_messages(const json::array& messages, const ModelLimits& limits,
                          std::vector<std::string>& warnings) {
  if (messages.empty()) refuse("messages", "must hold at least one message");
  json::array out;
  out.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    out.push_back(read_message(messages[i], element("messages", i), limits, warnings));
  }
  return out;
}

void rename_developer_role(json::array& messages) {
  for (json::value& message : messages) {
    json::value& role = message.as_object()["role"];
    if (role == "developer") role = "system";
  }
}

void guard_values(json::object& kwargs, const Guard& guard) {
  for (auto& member : kwargs) guard_value(member.value(), guard);
}

void guard_list(json::array& values, const Guard& guard) {
  for (json::value& value : values) guard_value(value, guard);
}

void guard_strings(json::array& messages, const Guard& guard) {
  for (json::value& value : messages) {
    json::object& message = value.as_object();
    for (const std::string_view name : {"content", "name", "tool_call_id", "reasoning_content"}) {
      if (json::value* text = message.if_contains(name)) guard_value(*text, guard);
    }
    json::value* calls = message.if_contains("tool_calls");
    if (calls == nullptr) continue;
    for (json::value& call_value : calls->as_array()) {
      json::object& call = call_value.as_object();
      if (json::value* id = call.if_contains("id")) guard_value(*id, guard);
      for (auto& member : call["function"].as_object()) guard_value(member.value(), guard);
    }
  }
}

std::string mark_final_message(json::array& messages) {
  json::value& content = messages.back().as_object()["content"];
  std::string mark = "continue-here";
  const std::string all = json::serialize(messages);
  for (int i = 0; all.find(mark) != std::string::npos; ++i)
    mark = fmt::format("continue-here-{}", i);
  content = std::string(content.as_string()) + mark;
  return mark;
}

std::string cut_at_mark(std::string rendered, std::string_view mark) {
  const std::size_t at = rendered.rfind(mark);
  if (at == std::string::npos) {
    refuse("continue_final_message", "needs a last message whose text the chat template prints");
  }
  rendered.resize(at);
  return rendered;
}

}  // namespace bodega::api
