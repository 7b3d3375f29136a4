#include "api/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace bodega::api {
namespace {

constexpr std::size_t kMostTools = 512;
constexpr std::size_t kLongestName = 128;

bool fits_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
         });
}

void read_tool(const json::value& value, const std::string& path, const ModelLimits& limits,
               std::vector<std::string>& warnings, ToolList& into) {
  Fields tool(as_object(value, path), path);
  if (tool.string("type").value_or("function") != "function") {
    refuse(tool.path("type"), "must be \"function\"");
  }
  const json::object* given = tool.object("function");
  if (given == nullptr) refuse(tool.path("function"), "is missing");
  Fields function(*given, tool.path("function"));
  const std::optional<std::string> name = function.string("name");
  if (!name) refuse(function.path("name"), "is missing");
  const std::string description = function.string("description").value_or("");
  const json::object* parameters = function.object("parameters");
  const bool strict = function.boolean("strict").value_or(false);
  into.add(tool.path("function"), *name, description, parameters, strict);
  note_unknown_fields(function, limits, warnings);
  note_unknown_fields(tool, limits, warnings);
}

struct Choice {
  ToolChoice choice = ToolChoice::kAuto;
  std::string named;
};

Choice read_choice(Fields& fields) {
  const json::value* value = fields.find("tool_choice");
  if (value == nullptr) return {};
  const std::string path = fields.path("tool_choice");
  if (value->is_string()) {
    const json::string& word = value->get_string();
    if (word == "auto") return {ToolChoice::kAuto, {}};
    if (word == "none") return {ToolChoice::kNone, {}};
    if (word == "required") return {ToolChoice::kRequired, {}};
    refuse(path, "must be \"none\", \"auto\", \"required\" or a named function");
  }
  Fields choice(as_object(*value, path), path);
  if (choice.string("type").value_or("function") != "function") {
    refuse(choice.path("type"), "must be \"function\"");
  }
  const json::object* function = choice.object("function");
  if (function == nullptr) refuse(choice.path("function"), "is missing");
  Fields named(*function, choice.path("function"));
  const std::optional<std::string> name = named.string("name");
  if (!name) refuse(named.path("name"), "is missing");
  return {ToolChoice::kNamed, *name};
}

}  // namespace

void ToolList::add(const std::string& path, const std::string& name, const std::string& description,
                   const json::object* parameters, bool strict) {
  if (!fits_name(name)) {
    refuse(path + ".name",
           fmt::format("must have 1 to {} letters, digits, '_', '-' or '.'", kLongestName));
  }
  for (const text::ToolDeclaration& tool : *declared_) {
    if (tool.name == name) refuse(path + ".name", "is the name of two tools");
  }
  json::object schema = parameters != nullptr ? *parameters : json::object();
  if (!schema.contains("type")) schema["type"] = "object";
  if (!schema.contains("properties")) schema["properties"] = json::object();
  json::object function{{"name", name}};
  if (!description.empty()) function["description"] = description;
  function["parameters"] = schema;
  listed_.push_back(json::object{{"type", "function"}, {"function", std::move(function)}});
  declared_->push_back({name, std::move(schema)});
  strict_ = strict_ || strict;
}

Tools ToolList::finish(ToolChoice choice, std::string named, const std::string& path) {
  Tools tools;
  tools.choice = choice;
  tools.named = std::move(named);
  if (declared_->empty()) {
    if (tools.must_call()) refuse(path, "needs tools to choose from");
    return tools;
  }
  const auto is_named = [&](const text::ToolDeclaration& tool) { return tool.name == tools.named; };
  const bool known = std::any_of(declared_->begin(), declared_->end(), is_named);
  if (choice == ToolChoice::kNamed && !known) {
    refuse(path, fmt::format("names \"{}\", which is none of the tools", tools.named));
  }
  tools.strict = strict_;
  tools.schema_member = schema_member_;
  tools.listed = std::move(listed_);
  tools.declared = std::move(declared_);
  return tools;
}

Tools read_tools(Fields& fields, const ModelLimits& limits, std::vector<std::string>& warnings) {
  ToolList list(".function.parameters");
  if (const json::array* given = fields.array("tools")) {
    const std::string path = fields.path("tools");
    if (given->size() > kMostTools)
      refuse(path, fmt::format("may hold at most {} tools", kMostTools));
    for (std::size_t i = 0; i < given->size(); ++i) {
      read_tool((*given)[i], element(path, i), limits, warnings, list);
    }
  }
  Choice choice = read_choice(fields);
  Tools tools = list.finish(choice.choice, std::move(choice.named), fields.path("tool_choice"));
  const std::optional<bool> parallel = fields.boolean("parallel_tool_calls");
  if (parallel && tools.declared == nullptr) {
    refuse(fields.path("parallel_tool_calls"), "needs tools");
  }
  tools.parallel = parallel.value_or(true);
  return tools;
}

}  // namespace bodega::api
