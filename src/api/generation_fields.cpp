#include "api/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>

#include "base/errors.h"

namespace bodega::api {
namespace {

using core::SamplingParams;
using core::StopParams;

constexpr double kAnyInt = std::numeric_limits<int>::max();
constexpr std::size_t kMostStops = 16;
constexpr double kMostBias = 100;

// api.md "Sampling". Defaults are those of the structs.
constexpr auto kPlainFields = std::to_array<PlainField>({
    {"temperature", &SamplingParams::temperature, 0, 2},
    {"top_p", &SamplingParams::top_p, 0, 1, true},
    {"top_k", &SamplingParams::top_k, -1, kAnyInt},  // -1 is vLLM's word for off
    {"min_p", &SamplingParams::min_p, 0, 1},
    {"typical_p", &SamplingParams::typical_p, 0, 1, true},
    {"repetition_penalty", &SamplingParams::repetition_penalty, 0.125, 100},
    {"presence_penalty", &SamplingParams::presence_penalty, -2, 2},
    {"frequency_penalty", &SamplingParams::frequency_penalty, -2, 2},
    {"min_tokens", &StopParams::min_tokens, 0, kAnyInt},
    {"ignore_eos", &StopParams::ignore_eos},
    {"include_stop_str_in_output", &StopParams::include_stop_str_in_output},
    {"n", &GenerationFields::n, 1, 128},
    {"max_tokens", &GenerationFields::max_tokens, 1, kAnyInt},
    {"max_completion_tokens", &GenerationFields::max_completion_tokens, 1, kAnyInt},
    {"max_reasoning_tokens", &GenerationFields::max_reasoning_tokens, 0, kAnyInt},
    {"stream", &GenerationFields::stream},
    {"return_token_ids", &GenerationFields::return_token_ids},
});

template <typename Owner>
Owner& owner_in(GenerationFields& fields) {
  if constexpr (std::is_same_v<Owner, SamplingParams>) return fields.sampling;
  if constexpr (std::is_same_v<Owner, StopParams>) return fields.stop;
  if constexpr (std::is_same_v<Owner, GenerationFields>) return fields;
}

template <typename Owner, typename Value>
void assign(GenerationFields& fields, Value Owner::* member, double value) {
  owner_in<Owner>(fields).*member = static_cast<Value>(value);
}

template <typename Owner>
void assign(GenerationFields& fields, std::optional<int> Owner::* member, double value) {
  owner_in<Owner>(fields).*member = static_cast<int>(value);
}

void read_plain(const PlainField& field, Fields& source, GenerationFields& into) {
  double value = 0;
  if (field.is_bool()) {
    const std::optional<bool> given = source.boolean(field.name);
    if (!given) return;
    value = *given ? 1 : 0;
  } else {
    const json::value* given = source.find(field.name);
    if (given == nullptr) return;
    const std::string path = source.path(field.name);
    if (!given->is_number()) refuse(path, "must be " + field.requirement());
    value = given->to_number<double>();
    if (!field.is_integer()) value = static_cast<float>(value);  // 1e-300 is no penalty above 0
    const bool below = field.above_least ? value <= field.least : value < field.least;
    const bool whole = !field.is_integer() || std::trunc(value) == value;
    if (!std::isfinite(value) || below || value > field.most || !whole) {
      refuse(path, "must be " + field.requirement());
    }
  }
  std::visit([&](auto member) { assign(into, member, value); }, field.target);
}

void read_seed(Fields& source, GenerationFields& into) {
  const json::value* value = source.find("seed");
  if (value == nullptr) return;
  into.seed = value->is_uint64()
                  ? value->get_uint64()
                  : static_cast<std::uint64_t>(as_integer(*value, source.path("seed")));
}

std::string stop_string(const json::value& value, const std::string& path) {
  std::string text = as_string(value, path);
  if (text.empty()) refuse(path, "must not be empty");
  return text;
}

void read_stop(Fields& source, GenerationFields& into) {
  const json::value* value = source.find("stop");
  if (value == nullptr) return;
  if (value->is_string()) {
    into.stop.stop.push_back(stop_string(*value, "stop"));
    return;
  }
  if (!value->is_array()) refuse("stop", "must be a string or an array of strings");
  const json::array& list = value->get_array();
  if (list.size() > kMostStops)
    refuse("stop", fmt::format("may hold at most {} strings", kMostStops));
  for (std::size_t i = 0; i < list.size(); ++i) {
    into.stop.stop.push_back(stop_string(list[i], element("stop", i)));
  }
}

core::TokenId bias_key(std::string_view key, const std::string& path, int vocab_size) {
  core::TokenId id = -1;
  const char* end = std::to_address(key.end());
  const auto [stopped, error] = std::from_chars(std::to_address(key.begin()), end, id);
  if (error != std::errc{} || stopped != end || id < 0) refuse(path, "must be named by a token id");
  if (id >= vocab_size)
    refuse(path, fmt::format("is outside the vocabulary of {} tokens", vocab_size));
  return id;
}

void read_logit_bias(Fields& source, const ModelLimits& limits, GenerationFields& into) {
  const json::object* map = source.object("logit_bias");
  if (map == nullptr) return;
  for (const auto& member : *map) {
    const std::string path = fmt::format("logit_bias.{}", std::string_view(member.key()));
    const core::TokenId id = bias_key(member.key(), path, limits.vocab_size);
    const double bias = as_number(member.value(), path);
    if (std::abs(bias) > kMostBias) refuse(path, "must be a number from -100 to 100");
    into.sampling.logit_bias[id] = static_cast<float>(bias);
  }
}

void read_priority(Fields& source, GenerationFields& into) {
  const std::optional<std::string> word = source.string("priority");
  if (!word) return;
  if (*word == "interactive") {
    into.priority = core::Priority::kInteractive;
  } else if (*word == "normal") {
    into.priority = core::Priority::kNormal;
  } else if (*word == "batch") {
    into.priority = core::Priority::kBatch;
  } else {
    refuse("priority", "must be \"interactive\", \"normal\" or \"batch\"");
  }
}

void read_stream_options(Fields& source, const ModelLimits& limits, GenerationFields& into) {
  const json::object* object = source.object("stream_options");
  if (object == nullptr) return;
  Fields options(*object, "stream_options");
  into.include_usage = options.boolean("include_usage").value_or(false);
  into.continuous_usage = options.boolean("continuous_usage_stats").value_or(false);
  note_unknown_fields(options, limits, into.warnings);
}

void read_script(Fields& source, GenerationFields& into) {
  const json::value* metadata = source.find("metadata");
  if (metadata == nullptr || !metadata->is_object()) return;
  const json::value* script = metadata->get_object().if_contains("script");
  if (script != nullptr && script->is_string()) into.script = script->get_string();
}

void read_tail_budget(GenerationFields& into) {
  if (into.max_completion_tokens) into.max_tokens = into.max_completion_tokens;
  if (into.max_tokens && into.stop.min_tokens > *into.max_tokens) {
    refuse("min_tokens", "must not exceed max_tokens");
  }
}

}  // namespace

bool PlainField::is_bool() const {
  return std::holds_alternative<bool StopParams::*>(target) ||
         std::holds_alternative<bool GenerationFields::*>(target);
}

bool PlainField::is_budget() const {
  return name == "max_tokens" || name == "max_completion_tokens";
}

bool PlainField::is_integer() const {
  return !is_bool() && !std::holds_alternative<float SamplingParams::*>(target);
}

std::string PlainField::requirement() const {
  if (is_bool()) return "true or false";
  const char* what = is_integer() ? "an integer" : "a number";
  const bool unbounded = most >= kAnyInt;
  if (above_least && unbounded) return fmt::format("{} above {}", what, least);
  if (above_least) return fmt::format("{} above {} and at most {}", what, least, most);
  if (unbounded) return fmt::format("{} of at least {}", what, least);
  return fmt::format("{} from {} to {}", what, least, most);
}

std::span<const PlainField> plain_fields() { return kPlainFields; }

GenerationFields read_generation(Fields& fields, const ModelLimits& limits, int least_tokens) {
  GenerationFields into;
  into.model = fields.string("model");
  for (PlainField field : kPlainFields) {
    if (field.is_budget()) field.least = least_tokens;
    read_plain(field, fields, into);
  }
  into.sampling.top_k = std::max(into.sampling.top_k, 0);
  read_seed(fields, into);
  read_stop(fields, into);
  if (const json::array* ids = fields.array("stop_token_ids")) {
    into.stop.stop_token_ids = read_token_ids(*ids, "stop_token_ids", limits.vocab_size);
  }
  read_logit_bias(fields, limits, into);
  read_priority(fields, into);
  read_stream_options(fields, limits, into);
  into.bound = read_bound_answer(fields, limits, into.warnings);
  read_script(fields, into);
  read_tail_budget(into);
  return into;
}

std::vector<core::TokenId> read_token_ids(const json::array& array, const std::string& path,
                                          int vocab_size) {
  std::vector<core::TokenId> ids;
  ids.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    const std::int64_t id = as_integer(array[i], element(path, i));
    if (id < 0 || id >= vocab_size) {
      refuse(element(path, i), fmt::format("is outside the vocabulary of {} tokens", vocab_size));
    }
    ids.push_back(static_cast<core::TokenId>(id));
  }
  return ids;
}

int resolve_max_tokens(std::optional<int> asked, int prompt_tokens, int context_length) {
  const int room = context_length - prompt_tokens;
  if (room < 1) {
    throw Error(
        ErrorKind::kContextLengthExceeded,
        fmt::format("The prompt has {} tokens, but the context of this model holds {} tokens, "
                    "prompt and answer together. Shorten the prompt.",
                    prompt_tokens, context_length));
  }
  return std::min(asked.value_or(room), room);
}

}  // namespace bodega::api
