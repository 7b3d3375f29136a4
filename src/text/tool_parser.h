#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bodega::text {

// How a family of models writes its calls.
enum class ToolFormat {
  kHermes,      // <tool_call>{"name": ..., "arguments": {...}}</tool_call>; also Qwen
  kQwen3Coder,  // <tool_call><function=f><parameter=k>v</parameter></function></tool_call>
  kGlm4,        // <tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>
  kMiniMaxM2,   // <minimax:tool_call><invoke name="f"><parameter name="k">v</parameter>...
  kLlama3Json,  // {"name": ..., "parameters": {...}} as the whole answer
  kJson,        // the same, or an array of such
  kMistral,     // [TOOL_CALLS][{...}], or [TOOL_CALLS]f[ARGS]{...}
  kPythonic,    // [f(k=1), g()]
  kDeepSeek,    // tool_calls_begin ... tool_sep ... in DeepSeek's wide brackets
  kKimiK2,      // <|tool_calls_section_begin|><|tool_call_begin|>functions.f:0...
  kHarmony,     // channels of gpt-oss, thought and all
};

// The format of that name (--tool-call-parser), if there is one; "" for none of them.
std::optional<ToolFormat> tool_format(std::string_view name);
// The names, comma-separated.
std::string tool_format_names();
// The format that a chat template's source speaks of.
std::optional<ToolFormat> tool_format_of(std::string_view template_source);

// Spellings that a vocabulary may hold as control tokens; the parser has to see them.
std::span<const std::string_view> tool_markers(ToolFormat format);

// What a request declares, for typing values and for telling calls from other text.
struct ToolDeclaration {
  std::string name;
  boost::json::object parameters;  // a JSON schema
};
using ToolDeclarations = std::vector<ToolDeclaration>;

struct ToolCall {
  std::string id;  // the model's own, where its format has one
  std::string name;
  std::string arguments;  // JSON text of an object
};

struct ParsedText {
  std::string reasoning;  // kHarmony only
  std::string content;
  std::vector<ToolCall> calls;
};

// Takes an answer apart into text and calls, piece by piece; any cutting of the same answer gives
// the same. A call is told when it is whole; markup that is unfinished at the end, malformed, or
// quoted as code is text. Blanks beside a call belong to the markup.
class ToolParser {
 public:
  virtual ~ToolParser() = default;
  virtual ParsedText push(std::string_view text) = 0;
  virtual ParsedText finish() = 0;  // what was held back; after the last push
  virtual bool thinking() const { return false; }
};

std::unique_ptr<ToolParser> make_tool_parser(ToolFormat format,
                                             std::shared_ptr<const ToolDeclarations> declared);

}  // namespace bodega::text
