#include <cstdlib>
#include <string_view>

#include "base/errors.h"
#include "text/chat_template.h"

// A chat template from a model file: whatever it says, loading and rendering end in text or in an
// error that names the file or the request.
namespace {

constexpr std::string_view kContext = R"({
  "messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "<b>2 + 2</b>?"},
    {"role": "assistant", "content": "", "reasoning_content": "add",
     "tool_calls": [{"id": "abc123XYZ", "type": "function", "function": {"name": "sum", "arguments": {"a": [2, 2.5]}}}]},
    {"role": "tool", "tool_call_id": "abc123XYZ", "content": "4"}, {"role": "user", "content": "Thanks"}],
  "tools": [{"type": "function", "function": {"name": "sum", "description": "Adds.",
    "parameters": {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "number"}}}}}}],
  "add_generation_prompt": true, "enable_thinking": false})";

void expect(const bodega::Error& error, bodega::ErrorKind kind) {
  if (error.kind() != kind) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  std::unique_ptr<bodega::text::ChatTemplate> chat_template;
  try {
    chat_template = std::make_unique<bodega::text::ChatTemplate>(
        source,
        bodega::text::TemplateOptions{.bos_token = "<s>", .eos_token = "</s>", .now_unix_s = 0});
  } catch (const bodega::Error& error) {
    expect(error, bodega::ErrorKind::kBadModelFile);
    return 0;
  }
  try {
    (void)chat_template->render(kContext);
  } catch (const bodega::Error& error) {
    expect(error, bodega::ErrorKind::kInvalidRequest);
  }
  return 0;
}
