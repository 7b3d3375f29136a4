#include "api/structured_fields.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "api/generation_fields.h"

namespace bodega::api {
namespace {

constexpr std::size_t kMostChoices = 1000;
constexpr std::string_view kAnyObject = R"({"type":"object"})";

using core::GrammarKind;

// Clients send a schema as an object, or as the text of one.
BoundAnswer schema_answer(const json::value& value, std::string path) {
  if (value.is_string()) {
    const json::value parsed = parse_json(value.get_string(), path);
    return schema_answer(parsed.is_string() ? json::value() : parsed, std::move(path));
  }
  if (!value.is_object()) refuse(path, "must be a JSON schema: an object");
  return bound_to(GrammarKind::kJsonSchema, to_text(value), std::move(path));
}

BoundAnswer choice_answer(const json::value& value, const std::string& path) {
  const json::array& choices = as_array(value, path);
  if (choices.empty()) refuse(path, "must hold at least one string");
  if (choices.size() > kMostChoices) {
    refuse(path, fmt::format("may hold at most {} strings", kMostChoices));
  }
  std::string lark = "start: ";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const std::string choice = as_string(choices[i], element(path, i));
    if (choice.empty()) refuse(element(path, i), "must not be empty");
    lark += (i == 0 ? "" : " | ") + quoted(choice);
  }
  return bound_to(GrammarKind::kLark, lark + "\n", path);
}

std::string as_text(const json::value& value, const std::string& path) {
  std::string text = as_string(value, path);
  if (text.empty()) refuse(path, "must not be empty");
  return text;
}

BoundAnswer regex_answer(const json::value& value, const std::string& path) {
  return bound_to(GrammarKind::kRegex, as_text(value, path), path);
}

BoundAnswer lark_answer(const json::value& value, const std::string& path) {
  return bound_to(GrammarKind::kLark, as_text(value, path), path);
}

BoundAnswer json_answer(const json::value& value, const std::string& path) {
  return schema_answer(value, path);
}

struct Form {
  std::string_view name;
  BoundAnswer (*read)(const json::value& value, const std::string& path);
};

// The members of structured_outputs; guided_<name> is the same thing.
constexpr auto kForms = std::to_array<Form>({
    {"json", json_answer},
    {"regex", regex_answer},
    {"choice", choice_answer},
    {"grammar", lark_answer},
});

class OnlyOne {
 public:
  void take(BoundAnswer answer) {
    if (found_) {
      refuse(answer.param, fmt::format("cannot bind the answer together with {}", found_->param));
    }
    found_ = std::move(answer);
  }
  std::optional<BoundAnswer> result() && { return std::move(found_); }

 private:
  std::optional<BoundAnswer> found_;
};

void read_json_schema(Fields& format, const ModelLimits& limits, std::vector<std::string>& warnings,
                      OnlyOne& into) {
  const json::object* object = format.object("json_schema");
  if (object == nullptr) refuse(format.path("json_schema"), "is missing");
  Fields fields(*object, format.path("json_schema"));
  fields.string("name");  // labels: they do not change what is allowed
  fields.string("description");
  fields.boolean("strict");  // every schema is enforced as it stands
  const json::value* schema = fields.find("schema");
  if (schema == nullptr) refuse(fields.path("schema"), "is missing");
  into.take(schema_answer(*schema, fields.path("schema")));
  note_unknown_fields(fields, limits, warnings);
}

void read_response_format(Fields& source, const ModelLimits& limits,
                          std::vector<std::string>& warnings, OnlyOne& into) {
  const json::object* object = source.object("response_format");
  if (object == nullptr) return;
  Fields format(*object, source.path("response_format"));
  const std::string type = format.string("type").value_or("");
  if (type == "json_object") {
    into.take(bound_to(GrammarKind::kJsonSchema, std::string(kAnyObject), format.path("type")));
  } else if (type == "json_schema") {
    read_json_schema(format, limits, warnings, into);
  } else if (type != "text") {
    refuse(format.path("type"), "must be \"text\", \"json_object\" or \"json_schema\"");
  }
  note_unknown_fields(format, limits, warnings);
}

void read_structured_outputs(Fields& source, const ModelLimits& limits,
                             std::vector<std::string>& warnings, OnlyOne& into) {
  const json::object* object = source.object("structured_outputs");
  if (object == nullptr) return;
  Fields fields(*object, source.path("structured_outputs"));
  for (const Form& form : kForms) {
    const json::value* value = fields.find(form.name);
    if (value != nullptr) into.take(form.read(*value, fields.path(form.name)));
  }
  if (fields.boolean("json_object").value_or(false)) {
    into.take(
        bound_to(GrammarKind::kJsonSchema, std::string(kAnyObject), fields.path("json_object")));
  }
  note_unknown_fields(fields, limits, warnings);
}

}  // namespace

BoundAnswer bound_to(core::GrammarKind kind, std::string text, std::string param) {
  BoundAnswer bound;
  bound.source.kind = kind;
  bound.source.text = std::move(text);
  bound.param = std::move(param);
  return bound;
}

std::string quoted(std::string_view text) { return to_text(json::value(json::string(text))); }

std::optional<BoundAnswer> read_bound_answer(Fields& fields, const ModelLimits& limits,
                                             std::vector<std::string>& warnings) {
  OnlyOne only;
  read_response_format(fields, limits, warnings, only);
  read_structured_outputs(fields, limits, warnings, only);
  for (const Form& form : kForms) {
    const std::string name = fmt::format("guided_{}", form.name);
    if (const json::value* value = fields.find(name))
      only.take(form.read(*value, fields.path(name)));
  }
  return std::move(only).result();
}

}  // namespace bodega::api
