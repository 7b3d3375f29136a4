#include "text/tool_parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/tool_block.h"

namespace bodega::text {
namespace {

struct Name {
  std::string_view name;
  ToolFormat format;
};

constexpr auto kNames = std::to_array<Name>({
    {"hermes", ToolFormat::kHermes},
    {"qwen3", ToolFormat::kHermes},
    {"qwen3_moe", ToolFormat::kHermes},
    {"qwen3_next", ToolFormat::kHermes},
    {"qwen3_vl", ToolFormat::kHermes},
    {"qwen3_coder", ToolFormat::kQwen3Coder},
    {"glm4_moe", ToolFormat::kGlm4},
    {"minimax_m2", ToolFormat::kMiniMaxM2},
    {"llama3_json", ToolFormat::kLlama3Json},
    {"json", ToolFormat::kJson},
    {"mistral", ToolFormat::kMistral},
    {"pythonic", ToolFormat::kPythonic},
    {"deepseek_r1", ToolFormat::kDeepSeek},
    {"kimi_k2", ToolFormat::kKimiK2},
    {"harmony", ToolFormat::kHarmony},
});

// What only the templates of one family write; the first that is found decides.
constexpr auto kSigns = std::to_array<Name>({
    {"<|channel|>", ToolFormat::kHarmony},
    {"<minimax:tool_call>", ToolFormat::kMiniMaxM2},
    {"<arg_key>", ToolFormat::kGlm4},
    {"<function=", ToolFormat::kQwen3Coder},
    {"<｜tool▁", ToolFormat::kDeepSeek},
    {"<|tool_call_begin|>", ToolFormat::kKimiK2},
    {"[TOOL_CALLS]", ToolFormat::kMistral},
    {"<tool_call>", ToolFormat::kHermes},
    {"<|python_start|>", ToolFormat::kPythonic},
    {"[func_name1(", ToolFormat::kPythonic},
    {"<|python_tag|>", ToolFormat::kLlama3Json},
    {"ipython", ToolFormat::kLlama3Json},
});

constexpr auto kHermesMarkers = std::to_array<std::string_view>({"<tool_call>", "</tool_call>"});
constexpr auto kGlmMarkers = std::to_array<std::string_view>(
    {"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"});
constexpr auto kMiniMaxMarkers =
    std::to_array<std::string_view>({"<minimax:tool_call>", "</minimax:tool_call>"});
constexpr auto kPythonMarkers =
    std::to_array<std::string_view>({"<|python_tag|>", "<|python_start|>", "<|python_end|>"});
constexpr auto kMistralMarkers =
    std::to_array<std::string_view>({"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"});
constexpr auto kDeepSeekMarkers = std::to_array<std::string_view>(
    {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
     "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"});
constexpr auto kKimiMarkers = std::to_array<std::string_view>(
    {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
     "<|tool_call_argument_begin|>", "<|tool_call_end|>"});
constexpr auto kHarmonyMarkers = std::to_array<std::string_view>(
    {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>"});

}  // namespace

std::optional<ToolFormat> tool_format(std::string_view name) {
  const auto found =
      std::find_if(kNames.begin(), kNames.end(), [&](const Name& row) { return row.name == name; });
  if (found == kNames.end()) return std::nullopt;
  return found->format;
}

std::string tool_format_names() {
  std::string names;
  for (const Name& row : kNames) names.append(names.empty() ? "" : ",").append(row.name);
  return names;
}

std::optional<ToolFormat> tool_format_of(std::string_view template_source) {
  for (const Name& sign : kSigns) {
    if (template_source.find(sign.name) != std::string_view::npos) return sign.format;
  }
  if (template_source.find("tools") == std::string_view::npos) return std::nullopt;
  return ToolFormat::kJson;
}

std::span<const std::string_view> tool_markers(ToolFormat format) {
  switch (format) {
    case ToolFormat::kHermes:
    case ToolFormat::kQwen3Coder:
      return kHermesMarkers;
    case ToolFormat::kGlm4:
      return kGlmMarkers;
    case ToolFormat::kMiniMaxM2:
      return kMiniMaxMarkers;
    case ToolFormat::kLlama3Json:
    case ToolFormat::kJson:
    case ToolFormat::kPythonic:
      return kPythonMarkers;
    case ToolFormat::kMistral:
      return kMistralMarkers;
    case ToolFormat::kDeepSeek:
      return kDeepSeekMarkers;
    case ToolFormat::kKimiK2:
      return kKimiMarkers;
    case ToolFormat::kHarmony:
      return kHarmonyMarkers;
  }
  return {};
}

std::unique_ptr<ToolParser> make_tool_parser(ToolFormat format,
                                             std::shared_ptr<const ToolDeclarations> declared) {
  switch (format) {
    case ToolFormat::kHermes:
      return make_block_parser(make_json_block("<tool_call>", "</tool_call>"));
    case ToolFormat::kQwen3Coder:
    case ToolFormat::kGlm4:
    case ToolFormat::kMiniMaxM2:
      return make_block_parser(make_tag_block(format, std::move(declared)));
    case ToolFormat::kLlama3Json:
    case ToolFormat::kJson:
      return make_block_parser(make_json_answer(std::move(declared)));
    case ToolFormat::kMistral:
      return make_block_parser(make_mistral_block());
    case ToolFormat::kPythonic:
      return make_block_parser(make_python_answer(std::move(declared)));
    case ToolFormat::kDeepSeek:
      return make_block_parser(make_deepseek_block());
    case ToolFormat::kKimiK2:
      return make_block_parser(make_kimi_block());
    case ToolFormat::kHarmony:
      return make_harmony_parser();
  }
  return nullptr;
}

}  // namespace bodega::text
