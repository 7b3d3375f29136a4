#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tool_parser.h"

namespace bodega::text {

// Private to this folder: JSON as models write it.

enum class Found { kMore, kNo, kDone };

// The JSON object or array that `text` begins with.
struct Extent {
  Found found = Found::kNo;
  std::size_t size = 0;
};
Extent json_extent(std::string_view text);

// The text as strict JSON: line breaks and tabs inside strings, which models leave bare, are
// escaped. Nothing when it is no JSON even then.
std::optional<std::string> as_json(std::string_view text);

// The members of an object's text, which as_json has passed; values as they are written.
using RawMembers = std::vector<std::pair<std::string, std::string_view>>;
RawMembers members_of(std::string_view object);
// The elements of an array's text, the same way.
std::vector<std::string_view> elements_of(std::string_view array);

// {"name": ..., "arguments" or "parameters": {...}}, the arguments also as the text of an object,
// or absent; {"function": {...}} around it is looked through. Nothing when it is no call.
std::optional<ToolCall> call_of_json(std::string_view object);

// False as soon as an unfinished object can no longer be a call: its first key says so.
bool may_be_call(std::string_view object_begin);

std::string quoted(std::string_view text);                         // as a JSON string
std::optional<std::string> json_string(std::string_view literal);  // the other way round

const ToolDeclaration* find_tool(const ToolDeclarations& declared, std::string_view name);

// The arguments of a call whose values are written as bare text: each is typed by the tool's schema
// and stays a string where it cannot be.
class BareArguments {
 public:
  explicit BareArguments(const ToolDeclaration* tool) : tool_(tool) {}
  void add(std::string_view name, std::string_view value);
  void add_json(std::string_view name, std::string json);
  std::string text() const;

 private:
  const ToolDeclaration* tool_;
  std::vector<std::pair<std::string, std::string>> values_;  // name, JSON
};

}  // namespace bodega::text
