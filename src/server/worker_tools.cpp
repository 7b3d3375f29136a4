#include "server/worker_tools.h"

#include <utility>

#include "api/structured_fields.h"

namespace bodega::server {
namespace {

std::optional<core::TokenId> control_token(const WorkerModel& model, std::string_view spelling) {
  const std::vector<core::TokenId> ids = model.encode(spelling, false, true);
  if (ids.size() != 1 || !model.decode(ids, true).empty()) return std::nullopt;
  return ids[0];
}

text::ToolFormat format_of(const WorkerModel& model, const WorkerOptions& options) {
  if (const auto named = text::tool_format(options.model.tool_call_parser)) return *named;
  // A template that knows no tools is told of them in the words of this one.
  return text::tool_format_of(model.template_source()).value_or(text::ToolFormat::kHermes);
}

void bind_tools(const api::Tools& tools, const api::CallSpelling& spelling,
                api::GenerationFields& fields) {
  std::optional<core::GrammarSource> grammar = api::tool_grammar(tools, spelling, fields.bound);
  if (!grammar) return;
  api::BoundAnswer bound = api::bound_to(grammar->kind, std::move(grammar->text), "tools");
  if (fields.bound) bound.parts.push_back(*fields.bound);
  for (std::size_t i = 0; i < tools.declared->size(); ++i) {
    bound.parts.push_back(api::bound_to(core::GrammarKind::kJsonSchema,
                                        api::to_text((*tools.declared)[i].parameters),
                                        api::element("tools", i) + tools.schema_member));
  }
  fields.bound = std::move(bound);
}

}  // namespace

ToolSetup set_up_tools(const WorkerModel& model, const WorkerOptions& options,
                       const api::Tools& tools, api::GenerationFields& fields) {
  const text::ToolFormat format = format_of(model, options);
  ToolSetup setup;
  if (!tools.callable() && format != text::ToolFormat::kHarmony) return setup;
  for (const std::string_view marker : text::tool_markers(format)) {
    if (const auto id = control_token(model, marker)) setup.shown.push_back(*id);
  }
  const auto declared =
      tools.declared != nullptr ? tools.declared : std::make_shared<const text::ToolDeclarations>();
  setup.make_parser = [format, declared] { return text::make_tool_parser(format, declared); };
  if (!tools.callable()) return setup;
  const auto atom = [&model](std::string_view marker) {
    const std::optional<core::TokenId> id = control_token(model, marker);
    return id ? "<[" + std::to_string(*id) + "]>" : api::quoted(marker);
  };
  bind_tools(tools, {format, atom, std::string(model.template_source())}, fields);
  return setup;
}

}  // namespace bodega::server
