#include "api/tool_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace bodega::api {
namespace {

using text::ToolDeclaration;
using text::ToolFormat;

// A model that may go on calling sometimes does nothing else.
constexpr int kMostCalls = 32;

// As textkit has them for schemas that stand alone.
constexpr std::string_view kBlanks = R"([ ]|\n[ ]{0,12})";

// Collects the rules of one Lark grammar.
class Lark {
 public:
  // A rule for `body`; its name.
  std::string rule(const std::string& body) {
    std::string name = fmt::format("r{}", count_++);
    rules_ += fmt::format("{}: {}\n", name, body);
    return name;
  }

  std::string json(json::object schema) {
    schema["x-guidance"] = json::object{{"whitespace_pattern", kBlanks}};
    return rule("%json " + to_text(schema));
  }

  // The arguments of a call: what a tool does not declare is not offered, as textkit has it for
  // schemas that stand alone.
  std::string arguments(json::object schema) {
    const json::object* properties = schema.at("properties").if_object();
    const auto says = [&](const char* keyword) { return schema.contains(keyword); };
    const bool merges = says("allOf") || says("anyOf") || says("oneOf") || says("$ref");
    const bool open =
        says("additionalProperties") || says("patternProperties") || says("minProperties");
    if (properties != nullptr && !properties->empty() && !merges && !open && names_known(schema)) {
      schema["additionalProperties"] = false;
    }
    return this->json(std::move(schema));
  }

  // Any text up to and with `end`.
  std::string text_until(std::string_view end) {
    std::string name = fmt::format("r{}", count_++);
    rules_ += fmt::format("{}[suffix={}]: /(?s:.*)/\n", name, quoted(end));
    return name;
  }

  std::string terminal(std::string name, const std::string& body) {
    rules_ += fmt::format("{}: {}\n", name, body);
    return name;
  }

  std::string done(const std::string& start) const {
    return fmt::format("start: {}\n{}", start, rules_);
  }

 private:
  static bool names_known(const json::object& schema) {
    const json::value* required = schema.if_contains("required");
    if (required == nullptr) return true;
    if (!required->is_array()) return false;
    const json::object& properties = schema.at("properties").as_object();
    const json::array& names = required->get_array();
    return std::all_of(names.begin(), names.end(), [&](const json::value& name) {
      return name.is_string() && properties.contains(name.get_string());
    });
  }

  std::string rules_;
  int count_ = 0;
};

std::string joined(const std::vector<std::string>& rules, std::string_view between) {
  return fmt::format("{}", fmt::join(rules, between));
}

class CallGrammar {
 public:
  CallGrammar(const Tools& tools, const CallSpelling& spelling)
      : tools_(tools), spelling_(spelling) {}

  Lark& lark() { return lark_; }

  // One call or, where they may be parallel, several.
  std::string calls() {
    std::vector<std::string> ways;
    for (const ToolDeclaration& tool : *tools_.declared) {
      if (tools_.choice == ToolChoice::kNamed && tool.name != tools_.named) continue;
      ways.push_back(lark_.rule(call(tool)));
    }
    const std::string one = lark_.rule(joined(ways, " | "));
    const bool many = tools_.parallel && tools_.choice != ToolChoice::kNamed;
    const std::string more =
        many ? fmt::format("({} {}){{0,{}}}", quoted(separator()), one, kMostCalls - 1) : "";
    const std::string list =
        separator().empty() && many ? fmt::format("{}{{1,{}}}", one, kMostCalls) : one + " " + more;
    return lark_.rule(opening() + list + closing());
  }

  // Text that is no call.
  std::string free_text() {
    switch (spelling_.format) {
      case ToolFormat::kJson:
      case ToolFormat::kLlama3Json:
      case ToolFormat::kPythonic:
        return lark_.rule(R"(/[^\[{<](?s:.*)/)");
      default: {
        const std::string opening = atom(text::tool_markers(spelling_.format).front());
        if (!opening.starts_with('"')) return lark_.rule("/(?s:.+)/");
        return lark_.terminal("NO_CALL", "~/(?s:.*)" + regex_of(opening) + "(?s:.*)/ & /(?s:.+)/");
      }
    }
  }

 private:
  std::string atom(std::string_view marker) const { return spelling_.atom(marker); }

  static std::string regex_of(std::string_view quoted_text) {
    std::string out;
    for (const char c : quoted_text.substr(1, quoted_text.size() - 2)) {
      if (std::string_view("\\/.[](){}*+?|^$").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
    return out;
  }

  bool says(std::string_view word) const {
    return spelling_.template_source.find(word) != std::string::npos;
  }
  bool mistral_named() const { return says("[ARGS]"); }

  // Around all calls together.
  std::string opening() const {
    switch (spelling_.format) {
      case ToolFormat::kMistral:
        return mistral_named() ? "" : atom("[TOOL_CALLS]") + " \"[\" ";
      case ToolFormat::kDeepSeek:
        return atom("<｜tool▁calls▁begin｜>") + " ";
      case ToolFormat::kKimiK2:
        return atom("<|tool_calls_section_begin|>") + " ";
      case ToolFormat::kMiniMaxM2:
        return atom("<minimax:tool_call>") + " \"\\n\" ";
      case ToolFormat::kPythonic:
        return "\"[\" ";
      default:
        return "";
    }
  }
  std::string closing() const {
    switch (spelling_.format) {
      case ToolFormat::kMistral:
        return mistral_named() ? "" : " \"]\"";
      case ToolFormat::kDeepSeek:
        return fmt::format(" {}", atom("<｜tool▁calls▁end｜>"));
      case ToolFormat::kKimiK2:
        return fmt::format(" {}", atom("<|tool_calls_section_end|>"));
      case ToolFormat::kMiniMaxM2:
        return fmt::format(" \"\\n\" {}", atom("</minimax:tool_call>"));
      case ToolFormat::kPythonic:
        return " \"]\"";
      default:
        return "";
    }
  }
  std::string separator() const {
    switch (spelling_.format) {
      case ToolFormat::kMistral:
        return mistral_named() ? "" : ", ";
      case ToolFormat::kPythonic:
        return ", ";
      case ToolFormat::kJson:
      case ToolFormat::kLlama3Json:
        return "; ";
      case ToolFormat::kKimiK2:
        return "";
      default:
        return "\n";
    }
  }

  std::string call(const ToolDeclaration& tool) {
    const std::string arguments = takes_nothing(tool) ? "\"{}\"" : lark_.arguments(tool.parameters);
    const auto object = [&](std::string_view key) {
      return fmt::format("{} {} \"}}\"",
                         quoted(fmt::format("{{\"name\": \"{}\", \"{}\": ", tool.name, key)),
                         arguments);
    };
    switch (spelling_.format) {
      case ToolFormat::kHermes:
        return fmt::format("{} \"\\n\" {} \"\\n\" {}", atom("<tool_call>"), object("arguments"),
                           atom("</tool_call>"));
      case ToolFormat::kJson:
        return object("arguments");
      case ToolFormat::kLlama3Json:
        return object("parameters");
      case ToolFormat::kMistral:
        if (!mistral_named()) return object("arguments");
        return fmt::format("{} {} {} {}", atom("[TOOL_CALLS]"), quoted(tool.name), atom("[ARGS]"),
                           arguments);
      case ToolFormat::kDeepSeek:
        return deepseek_call(tool.name, arguments);
      case ToolFormat::kKimiK2:
        return fmt::format("{} {} /[0-9]{{1,2}}/ {} {} {}", atom("<|tool_call_begin|>"),
                           quoted("functions." + tool.name + ":"),
                           atom("<|tool_call_argument_begin|>"), arguments,
                           atom("<|tool_call_end|>"));
      case ToolFormat::kPythonic:
        return python_call(tool);
      default:
        return tag_call(tool);
    }
  }

  static bool takes_nothing(const ToolDeclaration& tool) {
    const json::object* properties = tool.parameters.at("properties").if_object();
    return properties != nullptr && properties->empty() && tool.parameters.size() == 2;
  }

  std::string deepseek_call(const std::string& name, const std::string& arguments) const {
    const bool fenced = says("```json");
    const std::string head = fenced ? "function" : name;
    const std::string before = fenced ? quoted(name + "\n```json\n") + " " : "";
    return fmt::format("{} {} {} {}{}{} {}", atom("<｜tool▁call▁begin｜>"), quoted(head),
                       atom("<｜tool▁sep｜>"), before, arguments, fenced ? " \"\\n```\"" : "",
                       atom("<｜tool▁call▁end｜>"));
  }

  struct Parameter {
    std::string name;
    json::object schema;
    bool required = false;
  };

  // In the order of the schema; definitions of the whole travel with each.
  static std::vector<Parameter> parameters_of(const ToolDeclaration& tool) {
    std::vector<Parameter> parameters;
    const json::value* required = tool.parameters.if_contains("required");
    const json::object* properties = tool.parameters.at("properties").if_object();
    if (properties == nullptr) refuse("tools", tool.name + " has properties that are no object");
    for (const auto& member : *properties) {
      Parameter parameter{std::string(member.key()), {}, false};
      if (member.value().is_object()) parameter.schema = member.value().get_object();
      for (const char* definitions : {"$defs", "definitions"}) {
        if (const json::value* shared = tool.parameters.if_contains(definitions)) {
          parameter.schema[definitions] = *shared;
        }
      }
      if (required != nullptr && required->is_array()) {
        const json::array& names = required->get_array();
        parameter.required =
            std::find(names.begin(), names.end(), json::value(member.key())) != names.end();
      }
      parameters.push_back(std::move(parameter));
    }
    return parameters;
  }

  static bool is_text(const json::object& schema) {
    const json::value* type = schema.if_contains("type");
    return type != nullptr && *type == "string" && !schema.contains("enum") &&
           !schema.contains("pattern") && !schema.contains("format") &&
           !schema.contains("maxLength") && !schema.contains("minLength") &&
           !schema.contains("const");
  }

  // A value up to and with `end`. Bare text cannot be bound to more than being text.
  std::string bare_value(const Parameter& parameter, std::string_view end) {
    if (is_text(parameter.schema)) return lark_.text_until(end);
    const json::value* type = parameter.schema.if_contains("type");
    const json::value* values = parameter.schema.if_contains("enum");
    if (type != nullptr && *type == "string" && values != nullptr && values->is_array()) {
      std::vector<std::string> words;
      for (const json::value& word : values->get_array()) {
        if (word.is_string()) words.push_back(quoted(word.get_string()));
      }
      return fmt::format("({}) {}", joined(words, " | "), quoted(end));
    }
    if (type != nullptr && *type == "string") return lark_.text_until(end);
    return lark_.json(parameter.schema) + " " + quoted(end);
  }

  std::string tag_call(const ToolDeclaration& tool) {
    std::string body;
    for (const Parameter& parameter : parameters_of(tool)) {
      body += fmt::format("({} {}){} ", quoted(value_begin(parameter.name)),
                          bare_value(parameter, value_end()), parameter.required ? "" : "?");
    }
    switch (spelling_.format) {
      case ToolFormat::kGlm4:
        return fmt::format("{} {} {}{}", atom("<tool_call>"), quoted(tool.name + "\n"), body,
                           atom("</tool_call>"));
      case ToolFormat::kMiniMaxM2:
        return fmt::format("{} {}{}", quoted("<invoke name=\"" + tool.name + "\">\n"), body,
                           quoted("</invoke>"));
      default:
        return fmt::format("{} {} {}\"</function>\\n\" {}", atom("<tool_call>"),
                           quoted("\n<function=" + tool.name + ">\n"), body, atom("</tool_call>"));
    }
  }
  std::string value_begin(const std::string& name) const {
    switch (spelling_.format) {
      case ToolFormat::kGlm4:
        return "<arg_key>" + name + "</arg_key>\n<arg_value>";
      case ToolFormat::kMiniMaxM2:
        return "<parameter name=\"" + name + "\">";
      default:
        return "<parameter=" + name + ">\n";
    }
  }
  std::string_view value_end() const {
    switch (spelling_.format) {
      case ToolFormat::kGlm4:
        return "</arg_value>\n";
      case ToolFormat::kMiniMaxM2:
        return "</parameter>\n";
      default:
        return "\n</parameter>\n";
    }
  }

  std::string python_call(const ToolDeclaration& tool) {
    std::vector<std::string> must;
    std::vector<std::string> may;
    for (const Parameter& parameter : parameters_of(tool)) {
      const std::string one = quoted(parameter.name + "=") + " " + lark_.json(parameter.schema);
      (parameter.required ? must : may).push_back(one);
    }
    std::string body = joined(must, " \", \" ");
    for (const std::string& one : may) {
      if (!must.empty()) body += fmt::format(" (\", \" {})?", one);
    }
    if (must.empty() && !may.empty()) {
      const std::string any = lark_.rule(joined(may, " | "));
      body = fmt::format("({} (\", \" {})*)?", any, any);
    }
    return fmt::format("{} {} \")\"", quoted(tool.name + "("), body);
  }

  const Tools& tools_;
  const CallSpelling& spelling_;
  Lark lark_;
};

std::string answer_rule(const BoundAnswer& answer, Lark& lark) {
  if (answer.source.kind != core::GrammarKind::kJsonSchema) {
    refuse(answer.param,
           "cannot bind the answer together with tools, unless tool_choice is \"none\"");
  }
  return lark.json(parse_object(answer.source.text, answer.param));
}

}  // namespace

std::optional<core::GrammarSource> tool_grammar(const Tools& tools, const CallSpelling& spelling,
                                                const std::optional<BoundAnswer>& answer) {
  if (!tools.callable()) return answer ? std::optional(answer->source) : std::nullopt;
  const bool binds = tools.must_call() || tools.strict || answer.has_value();
  if (!binds) return std::nullopt;
  if (spelling.format == ToolFormat::kHarmony) {
    refuse(tools.must_call() ? "tool_choice" : "tools",
           "cannot be bound for a model that writes in channels: use \"auto\" without strict");
  }
  CallGrammar grammar(tools, spelling);
  const std::string calls = grammar.calls();
  std::string start = calls;
  if (!tools.must_call()) {
    if (answer) {
      start = calls + " | " + answer_rule(*answer, grammar.lark());
    } else {
      start = fmt::format("{}? {}?", grammar.free_text(), calls);
    }
  }
  return core::GrammarSource{core::GrammarKind::kLark, grammar.lark().done(start)};
}

}  // namespace bodega::api
