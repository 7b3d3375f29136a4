#include "api/anthropic_request.h"

#include <fmt/format.h>

#include <utility>

namespace bodega::api {
namespace {

using Warnings = std::vector<std::string>;

// One message of the wire, taken apart.
struct Turn {
  std::string text;
  std::string thought;
  json::array calls;    // of an assistant
  json::array results;  // messages of role tool
};

class BlockReader {
 public:
  BlockReader(const ModelLimits& limits, Warnings& warnings)
      : limits_(limits), warnings_(warnings) {}

  // A string, or blocks of which only those of type "text" may occur.
  std::string text(const json::value& value, const std::string& path) {
    if (value.is_string()) return std::string(value.get_string());
    if (!value.is_array()) refuse(path, "must be a string or an array of blocks");
    std::string text;
    const json::array& blocks = value.get_array();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Fields block(as_object(blocks[i], element(path, i)), element(path, i));
      const std::string type = read_type(block);
      if (type != "text") refuse_type(block, type);
      text += read_text(block);
      close(block);
    }
    return text;
  }

  Turn turn(const json::value& value, const std::string& path, bool assistant) {
    Turn turn;
    if (value.is_string()) {
      turn.text = std::string(value.get_string());
      return turn;
    }
    if (!value.is_array()) refuse(path, "must be a string or an array of blocks");
    const json::array& blocks = value.get_array();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      Fields block(as_object(blocks[i], element(path, i)), element(path, i));
      read_block(block, assistant, turn);
      close(block);
    }
    return turn;
  }

 private:
  void read_block(Fields& block, bool assistant, Turn& turn) {
    const std::string type = read_type(block);
    if (type == "text") {
      turn.text += read_text(block);
      return;
    }
    const bool read = assistant ? read_own_block(type, block, turn) : type == "tool_result";
    if (!read) refuse_type(block, type);
    if (!assistant) turn.results.push_back(read_result(block));
  }

  // What only an assistant's turn may hold; false for any other block.
  static bool read_own_block(const std::string& type, Fields& block, Turn& turn) {
    if (type == "thinking") {
      turn.thought += block.string("thinking").value_or("");
      block.string("signature");
      return true;
    }
    if (type == "redacted_thinking") {
      block.string("data");  // nothing that this model could read
      return true;
    }
    if (type != "tool_use") return false;
    turn.calls.push_back(read_call(block));
    return true;
  }

  static std::string read_type(Fields& block) {
    const std::optional<std::string> type = block.string("type");
    if (!type) refuse(block.path("type"), "is missing");
    return *type;
  }

  static std::string read_text(Fields& block) {
    const std::optional<std::string> text = block.string("text");
    if (!text) refuse(block.path("text"), "is missing");
    block.find("citations");
    return *text;
  }

  static json::object read_call(Fields& block) {
    const std::optional<std::string> name = block.string("name");
    if (!name) refuse(block.path("name"), "is missing");
    const json::object* input = block.object("input");
    json::object call;
    if (const std::optional<std::string> id = block.string("id")) call["id"] = *id;
    call["type"] = "function";
    call["function"] =
        json::object{{"name", *name}, {"arguments", input != nullptr ? *input : json::object()}};
    block.find("caller");
    return call;
  }

  json::object read_result(Fields& block) {
    json::object message{{"role", "tool"}};
    const std::optional<std::string> id = block.string("tool_use_id");
    if (!id) refuse(block.path("tool_use_id"), "is missing");
    message["tool_call_id"] = *id;
    const json::value* content = block.find("content");
    std::string text = content == nullptr ? "" : this->text(*content, block.path("content"));
    if (block.boolean("is_error").value_or(false)) text = "Error: " + text;
    message["content"] = text;
    return message;
  }

  [[noreturn]] static void refuse_type(Fields& block, const std::string& type) {
    refuse(block.path("type"),
           fmt::format("is \"{}\", which this model cannot read at this place", type));
  }

  void close(Fields& block) {
    block.find("cache_control");  // prefixes are cached without being asked for
    note_unknown_fields(block, limits_, warnings_);
  }

  const ModelLimits& limits_;
  Warnings& warnings_;
};

void read_message(const json::value& value, const std::string& path, const ModelLimits& limits,
                  BlockReader& reader, ChatRequest& into) {
  Fields fields(as_object(value, path), path);
  const std::string role = fields.string("role").value_or("");
  const bool assistant = role == "assistant";
  if (!assistant && role != "user" && role != "system") {
    refuse(fields.path("role"), "must be \"user\" or \"assistant\"");
  }
  const json::value* content = fields.find("content");
  if (content == nullptr) refuse(fields.path("content"), "is missing");
  Turn turn = reader.turn(*content, fields.path("content"), assistant);
  for (json::value& result : turn.results) into.messages.push_back(std::move(result));
  const bool only_results = !turn.results.empty() && turn.text.empty();
  if (!only_results) {
    json::object message{{"role", role}, {"content", turn.text}};
    if (!turn.thought.empty()) message["reasoning_content"] = turn.thought;
    if (!turn.calls.empty()) message["tool_calls"] = std::move(turn.calls);
    into.messages.push_back(std::move(message));
  }
  note_unknown_fields(fields, limits, into.common.warnings);
}

// An answer that is begun by the client goes on where it stops.
void read_messages(Fields& fields, const ModelLimits& limits, ChatRequest& into) {
  BlockReader reader(limits, into.common.warnings);
  if (const json::value* system = fields.find("system")) {
    const std::string text = reader.text(*system, fields.path("system"));
    if (!text.empty()) into.messages.push_back(json::object{{"role", "system"}, {"content", text}});
  }
  const json::array* messages = fields.array("messages");
  if (messages == nullptr) refuse("messages", "is missing: send an array of messages");
  if (messages->empty()) refuse("messages", "must hold at least one message");
  for (std::size_t i = 0; i < messages->size(); ++i) {
    read_message((*messages)[i], element("messages", i), limits, reader, into);
  }
  const json::object& last = into.messages.back().as_object();
  if (last.at("role") == "assistant") {
    if (last.contains("tool_calls")) refuse("messages", "must not end with a tool_use block");
    into.continue_final_message = true;
    into.add_generation_prompt = false;
  }
}

void read_tool(const json::value& value, const std::string& path, const ModelLimits& limits,
               Warnings& warnings, ToolList& into) {
  Fields tool(as_object(value, path), path);
  if (tool.string("type").value_or("custom") != "custom") {
    refuse(tool.path("type"),
           "is a tool that the server would have to run: only tools of your own");
  }
  const std::optional<std::string> name = tool.string("name");
  if (!name) refuse(tool.path("name"), "is missing");
  const std::string description = tool.string("description").value_or("");
  const json::object* schema = tool.object("input_schema");
  if (schema == nullptr) refuse(tool.path("input_schema"), "is missing");
  into.add(path, *name, description, schema, tool.boolean("strict").value_or(false));
  for (const char* name_of_hint : {"cache_control", "input_examples", "eager_input_streaming"}) {
    tool.find(name_of_hint);
  }
  note_unknown_fields(tool, limits, warnings);
}

struct Choice {
  ToolChoice choice = ToolChoice::kAuto;
  std::string named;
  bool parallel = true;
};

Choice read_choice(Fields& fields, const ModelLimits& limits, Warnings& warnings) {
  Choice out;
  const json::object* object = fields.object("tool_choice");
  if (object == nullptr) return out;
  Fields choice(*object, "tool_choice");
  const std::string type = choice.string("type").value_or("");
  if (type == "any") {
    out.choice = ToolChoice::kRequired;
  } else if (type == "tool") {
    out.choice = ToolChoice::kNamed;
    out.named = choice.string("name").value_or("");
  } else if (type == "none") {
    out.choice = ToolChoice::kNone;
  } else if (type != "auto") {
    refuse("tool_choice.type", "must be \"auto\", \"any\", \"tool\" or \"none\"");
  }
  out.parallel = !choice.boolean("disable_parallel_tool_use").value_or(false);
  note_unknown_fields(choice, limits, warnings);
  return out;
}

void read_tools(Fields& fields, const ModelLimits& limits, ChatRequest& into) {
  ToolList list(".input_schema");
  if (const json::array* tools = fields.array("tools")) {
    for (std::size_t i = 0; i < tools->size(); ++i) {
      read_tool((*tools)[i], element("tools", i), limits, into.common.warnings, list);
    }
  }
  Choice choice = read_choice(fields, limits, into.common.warnings);
  into.tools = list.finish(choice.choice, std::move(choice.named), "tool_choice");
  into.tools.parallel = choice.parallel;
}

void read_thinking(Fields& fields, const ModelLimits& limits, ChatRequest& into) {
  const json::object* object = fields.object("thinking");
  if (object == nullptr) return;
  Fields thinking(*object, "thinking");
  const std::string type = thinking.string("type").value_or("");
  if (type == "enabled" || type == "adaptive") {
    into.template_kwargs["enable_thinking"] = true;
    const std::optional<std::int64_t> budget = thinking.integer("budget_tokens");
    if (budget && (*budget < 0 || *budget > 1'000'000'000)) {
      refuse("thinking.budget_tokens", "must be a number of tokens");
    }
    if (budget) into.common.max_reasoning_tokens = static_cast<int>(*budget);
    thinking.find("display");
  } else if (type == "disabled") {
    into.template_kwargs["enable_thinking"] = false;
  } else {
    refuse("thinking.type", "must be \"enabled\", \"adaptive\" or \"disabled\"");
  }
  note_unknown_fields(thinking, limits, into.common.warnings);
}

void read_sampling(Fields& fields, GenerationFields& into) {
  const auto number = [&](const char* name, double least, double most) -> std::optional<float> {
    const std::optional<double> value = fields.number(name);
    if (value && (*value < least || *value > most)) {
      refuse(name, fmt::format("must be a number from {} to {}", least, most));
    }
    return value ? std::optional<float>(static_cast<float>(*value)) : std::nullopt;
  };
  into.sampling.temperature = number("temperature", 0, 1).value_or(1);
  into.sampling.top_p = number("top_p", 1e-6, 1).value_or(1);
  const std::optional<std::int64_t> top_k = fields.integer("top_k");
  if (top_k && (*top_k < 0 || *top_k > 1'000'000'000))
    refuse("top_k", "must be an integer of at least 0");
  into.sampling.top_k = static_cast<int>(top_k.value_or(0));
  if (const json::array* stops = fields.array("stop_sequences")) {
    if (stops->size() > 16) refuse("stop_sequences", "may hold at most 16 strings");
    for (std::size_t i = 0; i < stops->size(); ++i) {
      const std::string path = element("stop_sequences", i);
      into.stop.stop.push_back(as_string((*stops)[i], path));
      if (into.stop.stop.back().empty()) refuse(path, "must not be empty");
    }
  }
}

void read_budget(Fields& fields, GenerationFields& into) {
  const std::optional<std::int64_t> most = fields.integer("max_tokens");
  if (!most) refuse("max_tokens", "is missing");
  if (*most < 1 || *most > 2'000'000'000) refuse("max_tokens", "must be an integer of at least 1");
  into.max_tokens = static_cast<int>(*most);
}

void read_rest(Fields& fields, GenerationFields& into) {
  into.stream = fields.boolean("stream").value_or(false);
  for (const char* name : {"service_tier", "cache_control"}) fields.find(name);
  if (const json::object* metadata = fields.object("metadata")) {
    const json::value* script = metadata->if_contains("script");
    if (script != nullptr && script->is_string()) into.script = script->get_string();
  }
  for (const char* name : {"mcp_servers", "container", "context_management"}) {
    const json::value* value = fields.find(name);
    const bool empty = value == nullptr || (value->is_array() && value->get_array().empty());
    if (!empty) refuse(name, "is not supported");
  }
}

}  // namespace

ChatRequest parse_anthropic(std::string_view body, const ModelLimits& limits, bool counting) {
  const json::object object = parse_object(body);
  Fields fields(object);
  ChatRequest request;
  request.common.model = fields.string("model");
  read_messages(fields, limits, request);
  read_tools(fields, limits, request);
  read_thinking(fields, limits, request);
  if (!counting) {
    read_budget(fields, request.common);
    read_sampling(fields, request.common);
  }
  read_rest(fields, request.common);
  note_unknown_fields(fields, limits, request.common.warnings);
  return request;
}

}  // namespace bodega::api
