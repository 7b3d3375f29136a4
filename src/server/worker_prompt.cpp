#include "server/worker_prompt.h"

#include <boost/json.hpp>
#include <utility>

#include "api/tool_prompt.h"

namespace bodega::server {
namespace {

namespace json = boost::json;

std::string render(const WorkerModel& model, const api::ChatRequest& request,
                   const api::Guard& guard) {
  if (request.reasoning_effort && !model.template_mentions("reasoning_effort")) {
    api::refuse("reasoning_effort", "is not a setting of this model's chat template");
  }
  json::array messages = request.messages;
  if (!model.template_mentions("developer")) api::rename_developer_role(messages);
  const bool lists = request.tools.callable() && !model.template_mentions("tools");
  if (lists) api::list_tools(messages, request.tools.listed);
  if (!model.template_mentions("tool_calls")) api::spell_out_calls(messages);
  if (guard) api::guard_strings(messages, guard);
  std::string mark;
  if (request.continue_final_message) mark = api::mark_final_message(messages);
  const json::object context = api::template_context(request, std::move(messages), guard);
  std::string rendered = model.render(api::to_text(context));
  if (!mark.empty()) return api::cut_at_mark(std::move(rendered), mark);
  return rendered;
}

// A template that speaks of the tag belongs to a model that thinks; one that writes the
// opening tag at the very end has begun the block itself.
api::Reasoning reasoning_of(const WorkerModel& model, const api::ChatRequest& request,
                            const std::string& rendered) {
  if (!model.template_mentions("think")) return api::Reasoning::kNone;
  if (!request.add_generation_prompt) return api::Reasoning::kNone;  // the answer goes on in a text
  const std::size_t last = rendered.find_last_not_of(" \t\r\n");
  const std::string_view end = std::string_view(rendered).substr(0, last + 1);
  return end.ends_with("<think>") ? api::Reasoning::kOpen : api::Reasoning::kMayOpen;
}

}  // namespace

ChatPrompt chat_prompt(const WorkerModel& model, const api::ChatRequest& request) {
  const std::string rendered =
      render(model, request, [&model](std::string_view text) { return model.guard(text); });
  return {model.encode_rendered(rendered), reasoning_of(model, request, rendered)};
}

std::string chat_text(const WorkerModel& model, const api::ChatRequest& request) {
  return render(model, request, nullptr);
}

std::vector<core::TokenId> prompt_tokens(const WorkerModel& model, const api::Prompt& prompt) {
  if (const auto* ids = std::get_if<std::vector<core::TokenId>>(&prompt)) return *ids;
  return model.encode(std::get<std::string>(prompt), true, true);
}

}  // namespace bodega::server
