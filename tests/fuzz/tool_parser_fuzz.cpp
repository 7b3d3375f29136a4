#include <array>
#include <boost/json.hpp>
#include <cstdlib>
#include <string>

#include "base/utf8.h"
#include "text/tool_parser.h"

// What a model writes: whatever it is, each parser gives the same text and calls for the whole and
// for any pieces of it, and the arguments of a call are a JSON object. The first byte picks the
// parser, the second the size of the pieces.
namespace {

using namespace bodega::text;

constexpr auto kFormats = std::to_array<const char*>(
    {"hermes", "qwen3_coder", "glm4_moe", "minimax_m2", "llama3_json", "json", "mistral",
     "pythonic", "deepseek_r1", "kimi_k2", "harmony"});

const std::shared_ptr<const ToolDeclarations>& declared() {
  static const auto tools = std::make_shared<const ToolDeclarations>(ToolDeclarations{
      {"get_weather",
       boost::json::parse(R"({"properties":{"city":{"type":"string"},"days":{"type":"integer"}}})")
           .as_object()},
      {"order",
       boost::json::parse(
           R"({"properties":{"qty":{"type":"integer"},"on":{"type":"boolean"},"tags":{"type":"array"},)"
           R"("note":{"anyOf":[{"type":"string"},{"type":"null"}]}}})")
           .as_object()}});
  return tools;
}

std::string describe(ToolFormat format, std::string_view text, std::size_t piece) {
  const auto parser = make_tool_parser(format, declared());
  std::string reasoning;
  std::string content;
  std::string calls;
  const auto take = [&](ParsedText parsed) {
    reasoning += parsed.reasoning;
    content += parsed.content;
    for (const ToolCall& call : parsed.calls) {
      boost::json::parse_options options;
      options.max_depth = 128;
      if (!boost::json::parse(call.arguments, {}, options).is_object()) std::abort();
      if (call.name.empty()) std::abort();
      calls += call.id + "\x01" + call.name + "\x01" + call.arguments + "\x02";
    }
  };
  for (std::size_t at = 0; at < text.size(); at += piece)
    take(parser->push(text.substr(at, piece)));
  take(parser->finish());
  return reasoning + "\x03" + content + "\x03" + calls;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view answer(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (!bodega::is_valid_utf8(answer)) return 0;  // the decoder makes nothing else
  const ToolFormat format = *tool_format(kFormats[data[0] % kFormats.size()]);
  const std::string whole = describe(format, answer, answer.size() + 1);
  if (describe(format, answer, 1) != whole) std::abort();
  if (describe(format, answer, 1 + data[1] % 16) != whole) std::abort();
  return 0;
}
