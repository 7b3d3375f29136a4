#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace bodega::text {

struct TemplateOptions {
  std::string bos_token = {};  // empty: the template sees it undefined
  std::string eos_token = {};
  std::int64_t now_unix_s = -1;  // clock of strftime_now, in UTC; -1 = the real one, in local time
  // A render that takes longer fails; while it still runs, so does every other one.
  std::uint32_t max_render_ms = 10'000;
};

// A Hugging Face chat template (Jinja). Thread-safe after construction.
// Throws Error(kBadModelFile) with the template's line for one that does not compile.
class ChatTemplate {
 public:
  ChatTemplate(std::string_view source, const TemplateOptions& options);
  ~ChatTemplate();

  // `context_json`: object with messages, tools (or absent), add_generation_prompt and every key of
  // chat_template_kwargs, as JSON text. Throws Error(kInvalidRequest) when the template raises,
  // fails or spends more work than a conversation of this size may.
  std::string render(std::string_view context_json) const;

  // True when the template mentions the role or variable at all (system, developer, tools, ...),
  // outside comments.
  bool mentions(std::string_view word) const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::int64_t now_unix_s_;
};

}  // namespace bodega::text
