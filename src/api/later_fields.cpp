#include <array>

#include "api/generation_fields.h"
#include "base/errors.h"

namespace bodega::api {
namespace {

constexpr std::size_t kMostWarnings = 32;
constexpr std::size_t kLongestName = 100;

// A value that means the same as leaving the field out.
using Absent = bool (*)(const json::value&);

bool never(const json::value& /*value*/) { return false; }
bool is_false(const json::value& value) { return value.is_bool() && !value.get_bool(); }
bool is_empty_list(const json::value& value) {
  return value.is_array() && value.get_array().empty();
}
bool is_one(const json::value& value) {
  return value.is_number() && value.to_number<double>() == 1;
}
bool is_text_only(const json::value& value) {
  return value.is_array() && value.get_array().size() == 1 && value.get_array()[0].is_string() &&
         value.get_array()[0].get_string() == "text";
}
// Without functions there is nothing to choose, so these two words are honoured as they stand.
bool is_free_choice(const json::value& value) {
  return value.is_string() && (value.get_string() == "none" || value.get_string() == "auto");
}

struct LaterField {
  std::string_view name;
  Absent absent;
  std::string_view complaint;
};

// Known fields that this server does not honour yet: 400 by name, never silence.
constexpr auto kLaterFields = std::to_array<LaterField>({
    {"functions", is_empty_list, "is not supported: it is the old name of tools"},
    {"function_call", is_free_choice, "is not supported: it is the old name of tool_choice"},
    {"prediction", never, "is not supported yet"},
    {"suffix", never, "is not supported: this model does not fill the middle"},
    {"modalities", is_text_only, "may only be [\"text\"]"},
    {"audio", never, "is not supported: this model writes text"},
    {"web_search_options", never, "is not supported"},
    {"store", is_false, "may only be false: nothing is stored here"},
    {"best_of", is_one, "may only be 1: ask for n choices instead"},
    {"use_beam_search", is_false, "is not supported"},
});

// They steer billing, routing and caches of a hosted service; here they have no effect to honour.
constexpr auto kWithoutEffect = std::to_array<std::string_view>(
    {"service_tier", "prompt_cache_key", "safety_identifier", "user", "metadata"});

}  // namespace

void refuse_later_fields(Fields& fields) {
  for (const LaterField& later : kLaterFields) {
    const json::value* value = fields.find(later.name);
    if (value != nullptr && !later.absent(*value)) refuse(fields.path(later.name), later.complaint);
  }
  for (const std::string_view name : kWithoutEffect) fields.find(name);
}

void note_unknown_fields(const Fields& fields, const ModelLimits& limits,
                         std::vector<std::string>& warnings) {
  for (std::string path : fields.unknown()) {
    if (limits.strict) refuse(path, "is not a field that this server knows");
    if (warnings.size() == kMostWarnings) return;
    if (path.size() > kLongestName) path = path.substr(0, kLongestName) + "...";
    warnings.push_back("Unknown field " + path + " was not used.");
  }
}

}  // namespace bodega::api
