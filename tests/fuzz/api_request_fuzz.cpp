// Bodies of chat and completion requests: what is not refused with an Error is fit for a template
// and an engine, and every error can be said in JSON.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/chat_request.h"
#include "api/completion_request.h"
#include "api/errors.h"

namespace {

using namespace bodega;

constexpr api::ModelLimits kLimits{.context_length = 1000, .vocab_size = 1000, .strict = false};

void require(bool condition) {
  if (!condition) std::abort();
}

void check_common(const api::GenerationFields& fields) {
  require(fields.n >= 1 && fields.n <= 128);
  require(fields.sampling.repetition_penalty > 0 && fields.sampling.top_p > 0);
  require(fields.sampling.temperature >= 0 && fields.stop.stop.size() <= 16);
  for (const auto& [id, bias] : fields.sampling.logit_bias) {
    require(id >= 0 && id < kLimits.vocab_size && bias >= -100 && bias <= 100);
  }
}

void check_chat(std::string_view body) {
  api::ChatRequest request = api::parse_chat(body, kLimits);
  check_common(request.common);
  require(!request.messages.empty());
  api::rename_developer_role(request.messages);
  api::guard_strings(request.messages, [](std::string_view text) { return std::string(text); });
  const std::string context =
      api::to_text(api::template_context(request, std::move(request.messages)));
  api::parse_object(context);
}

void check_completion(std::string_view body) {
  const api::CompletionRequest request = api::parse_completion(body, kLimits);
  check_common(request.common);
  require(!request.prompts.empty());
}

template <typename Check>
void run(Check check, std::string_view body) {
  try {
    check(body);
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::kInvalidRequest);
    api::parse_object(api::render_error(error).body);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  run(check_chat, body);
  run(check_completion, body);
  return 0;
}
