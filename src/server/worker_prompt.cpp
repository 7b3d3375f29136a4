#include "server/worker_prompt.h"

#include <boost/json.hpp>
#include <utility>

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
  if (guard) api::guard_strings(messages, guard);
  std::string mark;
  if (request.continue_final_message) mark = api::mark_final_message(messages);
  const json::object context = api::template_context(request, std::move(messages));
  std::string rendered = model.render(api::to_text(context));
  if (!mark.empty()) return api::cut_at_mark(std::move(rendered), mark);
  return rendered;
}

}  // namespace

std::vector<core::TokenId> chat_tokens(const WorkerModel& model, const api::ChatRequest& request) {
  return model.encode_rendered(
      render(model, request, [&model](std::string_view text) { return model.guard(text); }));
}

std::string chat_text(const WorkerModel& model, const api::ChatRequest& request) {
  return render(model, request, nullptr);
}

std::vector<core::TokenId> prompt_tokens(const WorkerModel& model, const api::Prompt& prompt) {
  if (const auto* ids = std::get_if<std::vector<core::TokenId>>(&prompt)) return *ids;
  return model.encode(std::get<std::string>(prompt), true, true);
}

}  // namespace bodega::server
