#include "text/chat_template.h"

#include <ctime>

#include "text/textkit_call.h"

namespace bodega::text {
namespace {

struct Clock {
  std::int64_t unix_s;
  std::int32_t utc_offset_s;
};

Clock local_clock() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return {static_cast<std::int64_t>(now), static_cast<std::int32_t>(local.tm_gmtoff)};
}

}  // namespace

struct ChatTemplate::Handle {
  explicit Handle(textkit_template* owned) : chat_template(owned) {}
  ~Handle() { textkit_template_free(chat_template); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  textkit_template* chat_template;
};

ChatTemplate::ChatTemplate(std::string_view source, const TemplateOptions& options)
    : handle_(std::make_unique<Handle>(
          call<textkit_template*>(textkit_template_new, view_of(source), view_of(options.bos_token),
                                  view_of(options.eos_token), options.max_render_ms))),
      now_unix_s_(options.now_unix_s) {}

ChatTemplate::~ChatTemplate() = default;

std::string ChatTemplate::render(std::string_view context_json) const {
  const Clock clock = now_unix_s_ == -1 ? local_clock() : Clock{now_unix_s_, 0};
  return take(call<textkit_text>(textkit_template_render, handle_->chat_template,
                                 view_of(context_json), clock.unix_s, clock.utc_offset_s));
}

bool ChatTemplate::mentions(std::string_view word) const {
  return textkit_template_mentions(handle_->chat_template, view_of(word));
}

}  // namespace bodega::text
