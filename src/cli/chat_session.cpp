#include "cli/chat_session.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "base/errors.h"

namespace bodega::cli {
namespace {

namespace json = boost::json;

json::object message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

double number(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

}  // namespace

ChatSession::ChatSession(Client& client, ChatOptions options)
    : client_(client), options_(std::move(options)) {
  reset();
}

void ChatSession::reset() {
  messages_.clear();
  if (!options_.system.empty()) messages_.push_back(message("system", options_.system));
}

json::object ChatSession::body() const {
  json::object body{
      {"messages", messages_}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
  if (!options_.model.empty()) body["model"] = options_.model;
  if (options_.temperature) body["temperature"] = *options_.temperature;
  if (options_.max_tokens) body["max_completion_tokens"] = *options_.max_tokens;
  if (options_.seed) body["seed"] = *options_.seed;
  return body;
}

void ChatSession::take_event(const json::object& event, std::string& answer, std::ostream& out) {
  if (const json::value* usage = event.if_contains("usage");
      usage != nullptr && usage->is_object()) {
    usage_ = usage->get_object();
  }
  if (const json::value* timings = event.if_contains("timings")) timings_ = timings->as_object();
  const json::value* choices = event.if_contains("choices");
  if (choices == nullptr || choices->as_array().empty()) return;
  const json::object& delta = choices->as_array()[0].at("delta").as_object();
  const json::value* content = delta.if_contains("content");
  if (content == nullptr || !content->is_string()) return;
  answer += std::string_view(content->get_string());
  out << std::string_view(content->get_string()) << std::flush;
}

void ChatSession::ask(const std::string& text, std::ostream& out,
                      const std::function<bool()>& interrupted) {
  messages_.push_back(message("user", text));
  std::string answer;
  try {
    client_.stream(
        "/v1/chat/completions", body(),
        [&](const json::object& event) { take_event(event, answer, out); }, interrupted);
  } catch (...) {
    messages_.pop_back();
    throw;
  }
  out << '\n' << std::flush;
  messages_.push_back(message("assistant", answer));
}

std::string ChatSession::stats() const {
  if (usage_.empty()) return "No answer yet.";
  const double cached = number(usage_.at("prompt_tokens_details").as_object(), "cached_tokens");
  return fmt::format(
      "prompt   {} tokens, {} of them cached\n"
      "answer   {} tokens\n"
      "queue    {:.3f} s\n"
      "prefill  {:.3f} s, {:.1f} tokens/s\n"
      "decode   {:.3f} s, {:.1f} tokens/s",
      number(usage_, "prompt_tokens"), cached, number(usage_, "completion_tokens"),
      number(timings_, "queue_s"), number(timings_, "prefill_s"),
      number(timings_, "prefill_tokens_per_s"), number(timings_, "decode_s"),
      number(timings_, "decode_tokens_per_s"));
}

}  // namespace bodega::cli
