#include "api/openapi.h"

#include <array>
#include <string_view>

#include "api/generation_fields.h"

namespace bodega::api {
namespace {

enum Dialect : unsigned { kChat = 1, kCompletion = 2, kMessages = 4, kCount = 8, kResponses = 16 };

// A field that is more than a number or a switch: its JSON schema, and who takes it.
struct StructuredField {
  std::string_view name;
  std::string_view schema;
  unsigned dialects;
  unsigned required = 0;
};

constexpr std::string_view kText = R"({"type":["string","null"]})";
constexpr std::string_view kSwitch = R"({"type":["boolean","null"]})";
constexpr std::string_view kObject = R"({"type":["object","null"]})";
constexpr std::string_view kList = R"({"type":["array","null"]})";
constexpr std::string_view kTextOrList =
    R"({"anyOf":[{"type":"string","minLength":1},{"type":"array","items":{"type":"string","minLength":1},"maxItems":16},{"type":"null"}]})";
constexpr std::string_view kChatMessages =
    R"({"type":"array","minItems":1,"items":{"type":"object","required":["role"],"properties":{"role":{"enum":["system","developer","user","assistant","tool"]},"content":{"type":["string","array","null"]}}}})";
constexpr std::string_view kTurns =
    R"({"type":"array","minItems":1,"items":{"type":"object","required":["role","content"],"properties":{"role":{"enum":["user","assistant"]},"content":{"type":["string","array"]}}}})";
constexpr std::string_view kToolChoice =
    R"({"anyOf":[{"enum":["none","auto","required",null]},{"type":"object"}]})";

constexpr auto kStructuredFields = std::to_array<StructuredField>({
    {"model", kText, kChat | kCompletion | kMessages | kCount | kResponses},
    {"messages", kChatMessages, kChat, kChat},
    {"messages", kTurns, kMessages | kCount, kMessages | kCount},
    {"prompt", R"({"type":["string","array"]})", kCompletion, kCompletion},
    {"input", R"({"type":["string","array"]})", kResponses, kResponses},
    {"instructions", kText, kResponses},
    {"echo", kSwitch, kCompletion},
    {"seed", R"({"type":["integer","null"]})", kChat | kCompletion | kResponses},
    {"stop", kTextOrList, kChat | kCompletion},
    {"stop_token_ids", R"({"type":["array","null"],"items":{"type":"integer","minimum":0}})",
     kChat | kCompletion},
    {"logit_bias",
     R"({"type":["object","null"],"additionalProperties":{"type":"number","minimum":-100,"maximum":100}})",
     kChat | kCompletion},
    {"priority", R"({"enum":["interactive","normal","batch",null]})", kChat | kCompletion},
    {"stream_options", kObject, kChat | kCompletion},
    {"response_format", kObject, kChat | kCompletion},
    {"structured_outputs", kObject, kChat | kCompletion},
    {"guided_json", R"({"type":["object","string","null"]})", kChat | kCompletion},
    {"guided_regex", kText, kChat | kCompletion},
    {"guided_choice", R"({"type":["array","null"],"items":{"type":"string","minLength":1}})",
     kChat | kCompletion},
    {"guided_grammar", kText, kChat | kCompletion},
    {"tools", kList, kChat | kMessages | kCount | kResponses},
    {"tool_choice", kToolChoice, kChat | kResponses},
    {"tool_choice", kObject, kMessages | kCount},
    {"parallel_tool_calls", kSwitch, kChat | kResponses},
    {"chat_template_kwargs", kObject, kChat},
    {"reasoning_effort", kText, kChat},
    {"add_generation_prompt", kSwitch, kChat},
    {"continue_final_message", kSwitch, kChat},
    {"system", R"({"type":["string","array","null"]})", kMessages | kCount},
    {"stop_sequences",
     R"({"type":["array","null"],"items":{"type":"string","minLength":1},"maxItems":16})",
     kMessages},
    {"thinking", kObject, kMessages | kCount},
    {"text", kObject, kResponses},
    {"reasoning", kObject, kResponses},
    {"max_output_tokens", R"({"type":["integer","null"],"minimum":1})", kResponses},
});

// What Anthropic's dialect has in common with the others, with bounds of its own.
constexpr auto kMessageNumbers = std::to_array<StructuredField>({
    {"max_tokens", R"({"type":"integer","minimum":1})", kMessages, kMessages},
    {"temperature", R"({"type":["number","null"],"minimum":0,"maximum":1})", kMessages},
    {"top_p", R"({"type":["number","null"],"maximum":1,"exclusiveMinimum":0})", kMessages},
    {"top_k", R"({"type":["integer","null"],"minimum":0})", kMessages},
    {"stream", kSwitch, kMessages},
});

json::object plain_schema(const PlainField& field) {
  if (field.is_bool()) return {{"type", json::array{"boolean", "null"}}};
  json::object schema{{"type", json::array{field.is_integer() ? "integer" : "number", "null"}}};
  schema[field.above_least ? "exclusiveMinimum" : "minimum"] = field.least;
  if (field.most < 1e9) schema["maximum"] = field.most;
  schema["description"] = field.requirement();
  return schema;
}

json::object body_schema(unsigned dialect) {
  json::object properties;
  json::array required;
  const auto add = [&](const StructuredField& field) {
    if ((field.dialects & dialect) == 0) return;
    properties[field.name] = json::parse(field.schema);
    if ((field.required & dialect) != 0) required.push_back(json::value(json::string(field.name)));
  };
  for (const StructuredField& field : kStructuredFields) add(field);
  for (const StructuredField& field : kMessageNumbers) add(field);
  if ((dialect & (kChat | kCompletion | kResponses)) != 0) {
    for (const PlainField& field : plain_fields()) properties[field.name] = plain_schema(field);
  }
  if (dialect == kChat) {
    properties["logprobs"] = json::parse(kSwitch);
    properties["top_logprobs"] =
        json::parse(R"({"type":["integer","null"],"minimum":0,"maximum":20})");
  }
  if (dialect == kCompletion) {
    properties["logprobs"] = json::parse(R"({"type":["integer","null"],"minimum":0,"maximum":20})");
  }
  return {{"type", "object"}, {"properties", properties}, {"required", required}};
}

json::object answers(const char* what) {
  const json::object error{
      {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
  json::object out{{"200", {{"description", what}}}};
  for (const auto& [status, description] : std::to_array<std::pair<const char*, const char*>>(
           {{"400", "The request is wrong: param says where."},
            {"401", "A key is needed."},
            {"404", "The model is not loaded."},
            {"413", "The body is too large."},
            {"429", "The queue is full; Retry-After says when to come back."},
            {"503", "No model, loading, or a wait too long; Retry-After."}})) {
    json::object answer = error;
    answer["description"] = description;
    out[status] = std::move(answer);
  }
  return out;
}

json::object post(const char* summary, json::object schema) {
  const json::object content{{"application/json", {{"schema", std::move(schema)}}}};
  return {{"post",
           {{"summary", summary},
            {"requestBody", {{"required", true}, {"content", content}}},
            {"responses", answers("The answer, or a stream of events.")}}}};
}

json::object get(const char* summary) {
  return {{"get", {{"summary", summary}, {"responses", answers("The answer.")}}}};
}

json::object paths() {
  const json::object chat = post("A chat", body_schema(kChat));
  const json::object any = json::object{{"type", "object"}};
  return {{"/v1/chat/completions", chat},
          {"/chat/completions", chat},
          {"/v1/completions", post("A prompt", body_schema(kCompletion))},
          {"/v1/messages", post("A chat in Anthropic's shape", body_schema(kMessages))},
          {"/v1/messages/count_tokens", post("Tokens of such a chat", body_schema(kCount))},
          {"/v1/responses", post("A response, stateless", body_schema(kResponses))},
          {"/tokenize", post("Text to token ids", any)},
          {"/detokenize", post("Token ids to text", any)},
          {"/apply-template", post("What the model sees of a chat", any)},
          {"/v1/models", get("Loaded models")},
          {"/v1/queue/stats", get("Waiting and running requests")},
          {"/v1/admin/loaded-models", get("Models with their memory")},
          {"/health", get("Whether all is well")},
          {"/metrics", get("Prometheus text")}};
}

}  // namespace

json::object openapi_document() {
  const json::value error = json::parse(
      R"({"type":"object","required":["error"],"properties":{"error":{"type":"object","required":["message","type","param","code"]}}})");
  return {{"openapi", "3.1.0"},
          {"info", {{"title", "Bodega"}, {"version", "0.1.0"}}},
          {"paths", paths()},
          {"components", {{"schemas", {{"Error", error}}}}}};
}

}  // namespace bodega::api
