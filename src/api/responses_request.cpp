#include "api/responses_request.h"

#include <fmt/format.h>

#include <utility>

#include "base/errors.h"

namespace bodega::api {
namespace {

using Warnings = std::vector<std::string>;

// Builds the turns of a chat from the items of an input: calls belong to the assistant's turn, and
// a thought to the turn after it.
class Turns {
 public:
  void say(const std::string& role, const std::string& text) {
    if (role == "assistant") {
      assistant()["content"] = std::string(assistant().at("content").as_string()) + text;
      said_ = true;
      return;
    }
    close();
    messages_.push_back(json::object{{"role", role}, {"content", text}});
  }
  void think(const std::string& text) {
    if (said_) close();
    if (!text.empty()) assistant()["reasoning_content"] = text;
  }
  void call(json::object call) {
    json::object& turn = assistant();
    if (!turn.contains("tool_calls")) turn["tool_calls"] = json::array();
    turn["tool_calls"].as_array().push_back(std::move(call));
  }
  void answer(const std::string& id, const std::string& text) {
    close();
    messages_.push_back(json::object{{"role", "tool"}, {"tool_call_id", id}, {"content", text}});
  }
  json::array take() {
    close();
    return std::move(messages_);
  }

 private:
  json::object& assistant() {
    if (!open_) {
      open_ = true;
      turn_ = json::object{{"role", "assistant"}, {"content", ""}};
    }
    return turn_;
  }
  void close() {
    if (std::exchange(open_, false)) messages_.push_back(std::move(turn_));
    said_ = false;
  }

  json::array messages_;
  json::object turn_;
  bool open_ = false;
  bool said_ = false;
};

class ItemReader {
 public:
  ItemReader(const ModelLimits& limits, Warnings& warnings)
      : limits_(limits), warnings_(warnings) {}

  void read(const json::value& value, const std::string& path, Turns& turns) {
    Fields item(as_object(value, path), path);
    const std::string type = item.string("type").value_or("message");
    item.string("id");
    item.string("status");
    if (type == "message") {
      read_message(item, turns);
    } else if (type == "function_call") {
      turns.call(read_call(item));
    } else if (type == "function_call_output") {
      const std::string id = item.string("call_id").value_or("");
      turns.answer(id, text(item, "output"));
    } else if (type == "reasoning") {
      item.find("summary");
      item.find("encrypted_content");
      turns.think(text(item, "content"));
    } else {
      refuse(item.path("type"), fmt::format("is \"{}\", which this server does not know", type));
    }
    note_unknown_fields(item, limits_, warnings_);
  }

 private:
  void read_message(Fields& item, Turns& turns) {
    const std::string role = item.string("role").value_or("");
    if (role != "user" && role != "assistant" && role != "system" && role != "developer") {
      refuse(item.path("role"), "must be user, assistant, system or developer");
    }
    turns.say(role, text(item, "content"));
    item.find("phase");
  }

  json::object read_call(Fields& item) {
    const std::optional<std::string> name = item.string("name");
    if (!name) refuse(item.path("name"), "is missing");
    json::object arguments;
    const std::string given = item.string("arguments").value_or("");
    if (given.find_first_not_of(" \t\r\n") != std::string::npos) {
      try {
        arguments = parse_object(given, item.path("arguments"));
      } catch (const Error& error) {
        throw Error(error.kind(), error.what(), item.path("arguments"));
      }
    }
    return {{"id", item.string("call_id").value_or("")},
            {"type", "function"},
            {"function", {{"name", *name}, {"arguments", std::move(arguments)}}}};
  }

  // A string, or parts of text.
  std::string text(Fields& item, std::string_view member) {
    const json::value* value = item.find(member);
    if (value == nullptr) return {};
    if (value->is_string()) return std::string(value->get_string());
    const std::string path = item.path(member);
    std::string text;
    const json::array& parts = as_array(*value, path);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Fields part(as_object(parts[i], element(path, i)), element(path, i));
      const std::string type = part.string("type").value_or("");
      const bool known = type == "input_text" || type == "output_text" || type == "text" ||
                         type == "reasoning_text" || type == "refusal";
      if (!known) {
        refuse(part.path("type"), fmt::format("is \"{}\", but this model reads only text", type));
      }
      text += part.string(type == "refusal" ? "refusal" : "text").value_or("");
      for (const char* extra : {"annotations", "logprobs"}) part.find(extra);
      note_unknown_fields(part, limits_, warnings_);
    }
    return text;
  }

  const ModelLimits& limits_;
  Warnings& warnings_;
};

void read_input(Fields& fields, const ModelLimits& limits, ChatRequest& into) {
  Turns turns;
  if (const auto instructions = fields.string("instructions")) turns.say("system", *instructions);
  const json::value* input = fields.find("input");
  if (input == nullptr) refuse("input", "is missing");
  if (input->is_string()) {
    turns.say("user", std::string(input->get_string()));
  } else {
    ItemReader reader(limits, into.common.warnings);
    const json::array& items = as_array(*input, "input");
    if (items.empty()) refuse("input", "must hold at least one item");
    for (std::size_t i = 0; i < items.size(); ++i)
      reader.read(items[i], element("input", i), turns);
  }
  into.messages = turns.take();
}

struct Choice {
  ToolChoice choice = ToolChoice::kAuto;
  std::string named;
};

Choice read_choice(Fields& fields) {
  const json::value* value = fields.find("tool_choice");
  if (value == nullptr || *value == "auto") return {};
  if (*value == "none") return {ToolChoice::kNone, {}};
  if (*value == "required") return {ToolChoice::kRequired, {}};
  if (!value->is_object()) {
    refuse("tool_choice", "must be \"none\", \"auto\", \"required\" or a named function");
  }
  Fields object(value->get_object(), "tool_choice");
  if (object.string("type").value_or("") != "function") {
    refuse("tool_choice.type", "must be \"function\"");
  }
  return {ToolChoice::kNamed, object.string("name").value_or("")};
}

void read_tools(Fields& fields, const ModelLimits& limits, ChatRequest& into) {
  ToolList list(".parameters");
  if (const json::array* tools = fields.array("tools")) {
    for (std::size_t i = 0; i < tools->size(); ++i) {
      const std::string path = element("tools", i);
      Fields tool(as_object((*tools)[i], path), path);
      if (tool.string("type").value_or("") != "function") {
        refuse(tool.path("type"), "must be \"function\": the server runs no tools of its own");
      }
      const std::optional<std::string> name = tool.string("name");
      if (!name) refuse(tool.path("name"), "is missing");
      const std::string description = tool.string("description").value_or("");
      const json::object* parameters = tool.object("parameters");
      list.add(path, *name, description, parameters, tool.boolean("strict").value_or(false));
      note_unknown_fields(tool, limits, into.common.warnings);
    }
  }
  Choice choice = read_choice(fields);
  into.tools = list.finish(choice.choice, std::move(choice.named), "tool_choice");
  into.tools.parallel = fields.boolean("parallel_tool_calls").value_or(true);
}

// text.format is response_format with its members one level up.
void read_text_format(Fields& fields, const ModelLimits& limits, ChatRequest& into) {
  const json::object* object = fields.object("text");
  if (object == nullptr) return;
  Fields text(*object, "text");
  text.find("verbosity");
  if (const json::object* given = text.object("format")) {
    Fields format(*given, "text.format");
    const std::string type = format.string("type").value_or("text");
    for (const char* label : {"name", "description", "strict"}) format.find(label);
    const json::value* schema = format.find("schema");
    if (type == "json_object") {
      into.common.bound =
          bound_to(core::GrammarKind::kJsonSchema, R"({"type":"object"})", "text.format.type");
    } else if (type == "json_schema") {
      if (schema == nullptr || !schema->is_object())
        refuse("text.format.schema", "must be an object");
      into.common.bound =
          bound_to(core::GrammarKind::kJsonSchema, to_text(*schema), "text.format.schema");
    } else if (type != "text") {
      refuse("text.format.type", "must be \"text\", \"json_object\" or \"json_schema\"");
    }
    note_unknown_fields(format, limits, into.common.warnings);
  }
  note_unknown_fields(text, limits, into.common.warnings);
}

void read_budget(Fields& fields, GenerationFields& into) {
  const std::optional<std::int64_t> most = fields.integer("max_output_tokens");
  if (!most) return;
  if (*most < 1 || *most > 2'000'000'000) {
    refuse("max_output_tokens", "must be an integer of at least 1");
  }
  into.max_tokens = static_cast<int>(*most);
}

// What only a server with a memory could honour.
void refuse_state(Fields& fields) {
  const auto must_be = [&](const char* name, bool fits, const char* complaint) {
    if (!fits) refuse(name, complaint);
  };
  const auto is_false = [](const json::value* value) {
    return value == nullptr || (value->is_bool() && !value->get_bool());
  };
  for (const char* name :
       {"previous_response_id", "conversation", "prompt", "context_management"}) {
    must_be(name, fields.find(name) == nullptr, "is not supported: nothing is stored here");
  }
  must_be("background", is_false(fields.find("background")), "may only be false");
  must_be("store", is_false(fields.find("store")), "may only be false: nothing is stored here");
  const json::value* truncation = fields.find("truncation");
  must_be("truncation", truncation == nullptr || *truncation == "disabled",
          "may only be \"disabled\"");
  for (const char* name : {"include", "service_tier", "prompt_cache_key", "prompt_cache_retention",
                           "safety_identifier", "user", "client_metadata"}) {
    fields.find(name);
  }
}

}  // namespace

ResponsesRequest parse_responses(std::string_view body, const ModelLimits& limits) {
  const json::object object = parse_object(body);
  Fields fields(object);
  ResponsesRequest request;
  ChatRequest& chat = request.chat;
  chat.common = read_generation(fields, limits);
  read_budget(fields, chat.common);
  read_input(fields, limits, chat);
  read_tools(fields, limits, chat);
  read_text_format(fields, limits, chat);
  if (const json::object* reasoning = fields.object("reasoning")) {
    Fields effort(*reasoning, "reasoning");
    chat.reasoning_effort = effort.string("effort");
    effort.find("summary");
    note_unknown_fields(effort, limits, chat.common.warnings);
  }
  refuse_state(fields);
  note_unknown_fields(fields, limits, chat.common.warnings);
  for (const char* name :
       {"instructions", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p",
        "max_output_tokens", "reasoning", "text", "metadata"}) {
    const json::value* value = object.if_contains(name);
    request.echoed[name] = value != nullptr ? *value : json::value();
  }
  if (request.echoed["tools"].is_null()) request.echoed["tools"] = json::array();
  if (request.echoed["tool_choice"].is_null()) request.echoed["tool_choice"] = "auto";
  if (request.echoed["parallel_tool_calls"].is_null()) request.echoed["parallel_tool_calls"] = true;
  return request;
}

}  // namespace bodega::api
