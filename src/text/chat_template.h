#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bodega::text {

struct TemplateOptions {
  std::string bos_token;
  std::string eos_token;
  std::int64_t now_unix_s = -1;  // clock of strftime_now; -1 = the real one
};

// One rendered piece of a prompt: text from the template may spell control tokens, message text may not.
struct PromptPiece {
  std::string text;
  bool from_message = false;
};

// A Hugging Face chat template (Jinja). Thread-safe after construction.
// Throws Error(kBadModelFile) with the template's line for one that does not compile.
class ChatTemplate {
 public:
  ChatTemplate(std::string_view source, TemplateOptions options);
  ~ChatTemplate();

  // `context_json`: object with messages, tools (or absent), add_generation_prompt and every key of
  // chat_template_kwargs, as JSON text. Throws Error(kInvalidRequest) when the template raises.
  std::string render(std::string_view context_json) const;

  // The same text, cut where strings of the messages were printed, so that the tokenizer can refuse
  // control tokens spelt by users.
  std::vector<PromptPiece> render_pieces(std::string_view context_json) const;

  // True when the template mentions the role or variable at all (system, developer, tools, ...).
  bool mentions(std::string_view word) const;

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace bodega::text
