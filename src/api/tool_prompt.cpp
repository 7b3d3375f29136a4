#include "api/tool_prompt.h"

#include <string>
#include <utility>

namespace bodega::api {
namespace {

constexpr std::string_view kIntroduction =
    "You can call these functions, one JSON description a line:\n<tools>\n";
constexpr std::string_view kInstruction =
    "</tools>\nTo call one, write nothing but this, once a call:\n<tool_call>\n{\"name\": the "
    "function's "
    "name, \"arguments\": {the arguments}}\n</tool_call>\nIts result comes in <tool_response>. "
    "Otherwise "
    "answer in plain text.";

std::string text_of(json::object& message, std::string_view member) {
  const json::value* value = message.if_contains(member);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

void spell_calls(json::object& message) {
  std::string text = text_of(message, "content");
  for (json::value& call : message.at("tool_calls").as_array()) {
    const json::object& function = call.as_object().at("function").as_object();
    const json::object object{{"name", function.at("name")},
                              {"arguments", function.at("arguments")}};
    if (!text.empty()) text += "\n";
    text += "<tool_call>\n" + to_text(object) + "\n</tool_call>";
  }
  message["content"] = text;
  message.erase("tool_calls");
}

}  // namespace

void list_tools(json::array& messages, const json::array& tools) {
  std::string text(kIntroduction);
  for (const json::value& tool : tools) text += to_text(tool.at("function")) + "\n";
  text += kInstruction;
  json::object* first = messages.empty() ? nullptr : messages.front().if_object();
  if (first != nullptr && first->at("role") == "system") {
    std::string own = text_of(*first, "content");
    (*first)["content"] = own.empty() ? text : own + "\n\n" + text;
    return;
  }
  messages.insert(messages.begin(), json::object{{"role", "system"}, {"content", text}});
}

void spell_out_calls(json::array& messages) {
  json::array out;
  for (json::value& value : messages) {
    json::object& message = value.as_object();
    if (message.contains("tool_calls")) spell_calls(message);
    if (message.at("role") != "tool") {
      out.push_back(std::move(value));
      continue;
    }
    const std::string text =
        "<tool_response>\n" + text_of(message, "content") + "\n</tool_response>";
    // Results of parallel calls are one turn of the user's.
    json::object* last = out.empty() ? nullptr : out.back().if_object();
    if (last != nullptr && last->contains("answers_tools")) {
      (*last)["content"] = text_of(*last, "content") + "\n" + text;
    } else {
      out.push_back(json::object{{"role", "user"}, {"content", text}, {"answers_tools", true}});
    }
  }
  for (json::value& value : out) value.as_object().erase("answers_tools");
  messages = std::move(out);
}

}  // namespace bodega::api
