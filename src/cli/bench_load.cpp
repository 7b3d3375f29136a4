#include "cli/bench_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <random>
#include <utility>

#include "api/json.h"
#include "base/clock.h"
#include "base/errors.h"

namespace bodega::cli {
namespace {

namespace json = boost::json;

// Words that are one token each in the vocabularies of today's models.
constexpr auto kWords = std::to_array<const char*>(
    {"time",    "year",    "people",   "way",    "day",        "man",    "thing",   "woman",
     "life",    "child",   "world",    "school", "state",      "family", "student", "group",
     "country", "problem", "hand",     "part",   "place",      "case",   "week",    "company",
     "system",  "program", "question", "work",   "government", "number", "night",   "point"});

std::string words(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += kWords[random() % kWords.size()];
    text += ' ';
  }
  return text;
}

std::string request_body(const std::string& model, const LoadShape& shape, int stream) {
  const unsigned seed = shape.seed * 1000 + static_cast<unsigned>(stream);
  json::object body{
      {"messages",
       json::array{json::object{{"role", "user"}, {"content", words(shape.prompt_tokens, seed)}}}},
      {"max_tokens", shape.output_tokens},
      {"temperature", 0},
      {"ignore_eos", true},
      {"stream", true},
      {"stream_options", {{"include_usage", true}}}};
  if (!model.empty()) body["model"] = model;
  return api::to_text(body);
}

// Only the last chunk is parsed: a load generator must not measure itself.
void read_usage(std::string_view payload, RequestTrace& trace) {
  const json::object chunk = api::parse_object(payload, "The server's event");
  const json::value* usage = chunk.if_contains("usage");
  if (usage == nullptr || !usage->is_object()) return;
  const json::object& numbers = usage->get_object();
  trace.prompt_tokens = numbers.at("prompt_tokens").to_number<int>();
  trace.completion_tokens = numbers.at("completion_tokens").to_number<int>();
  const json::value* details = numbers.if_contains("prompt_tokens_details");
  if (details == nullptr || !details->is_object()) return;
  const json::value* cached = details->get_object().if_contains("cached_tokens");
  if (cached != nullptr && cached->is_number()) trace.cached_tokens = cached->to_number<int>();
}

void read_payload(std::string_view payload, RequestTrace& trace) {
  if (payload.find("\"content\":\"") != std::string_view::npos &&
      payload.find("\"content\":\"\"") == std::string_view::npos) {
    trace.pieces.push_back(monotonic_seconds());
  }
  if (payload.find("\"usage\":{") != std::string_view::npos) read_usage(payload, trace);
  if (payload.starts_with("{\"error\"")) trace.error = payload;
}

// One streamed call. Everything happens on the loop's thread.
class StreamCall : public std::enable_shared_from_this<StreamCall> {
 public:
  StreamCall(RequestTrace& trace, std::function<void()> on_end)
      : trace_(trace), on_end_(std::move(on_end)) {}

  void send(http::Loop& loop, const ServerAddress& address, std::string body) {
    trace_.sent = monotonic_seconds();
    http::ClientEvents events;
    const auto self = shared_from_this();
    events.on_head = [self](int status, const http::Headers&) {
      if (status != 200) self->trace_.error = fmt::format("status {}", status);
    };
    events.on_body = [self](std::string_view bytes) {
      self->reader_.read(bytes,
                         [&](std::string_view payload) { read_payload(payload, self->trace_); });
    };
    events.on_done = [self] { self->on_end_(); };
    events.on_error = [self](const std::string& reason) {
      self->trace_.error = reason;
      self->on_end_();
    };
    call_ = http::send_request(
        loop, address.endpoint,
        make_request(address, "POST", "/v1/chat/completions", std::move(body)), std::move(events));
  }

 private:
  RequestTrace& trace_;
  const std::function<void()> on_end_;
  EventReader reader_;
  std::shared_ptr<http::ClientCall> call_;
};

core::Request random_request(int vocab_size, const LoadShape& shape, int stream) {
  std::mt19937 random(shape.seed * 1000 + static_cast<unsigned>(stream));
  core::Request request;
  for (int i = 0; i < shape.prompt_tokens; ++i) {
    request.prompt.push_back(
        static_cast<core::TokenId>(random() % static_cast<unsigned>(vocab_size)));
  }
  request.sampling.temperature = 0;
  request.stop.max_tokens = shape.output_tokens;
  request.stop.ignore_eos = true;
  return request;
}

}  // namespace

std::vector<RequestTrace> load_server(const ServerAddress& address, const std::string& model,
                                      const LoadShape& shape) {
  std::vector<RequestTrace> traces(shape.streams);
  std::promise<void> all_done;
  int open = shape.streams;  // loop's thread
  http::Loop loop;
  loop.post([&] {
    for (int i = 0; i < shape.streams; ++i) {
      const auto call = std::make_shared<StreamCall>(traces[i], [&] {
        if (--open == 0) all_done.set_value();
      });
      call->send(loop, address, request_body(model, shape, i));
    }
  });
  loop.start();
  all_done.get_future().wait();
  loop.stop();
  return traces;
}

std::vector<RequestTrace> load_engine(engine::Engine& engine, int vocab_size,
                                      const LoadShape& shape) {
  std::vector<RequestTrace> traces(shape.streams);
  std::vector<std::promise<void>> ends(shape.streams);
  for (int i = 0; i < shape.streams; ++i) {
    RequestTrace& trace = traces[i];
    trace.sent = monotonic_seconds();
    engine.submit(random_request(vocab_size, shape, i),
                  [&trace, &end = ends[i]](const core::RequestOutput& output) {
                    for (const core::ChoiceOutput& choice : output.choices) {
                      if (!choice.tokens.empty()) trace.pieces.push_back(monotonic_seconds());
                    }
                    if (!output.finished) return;
                    trace.error = output.error;
                    trace.prompt_tokens = output.usage.prompt_tokens;
                    trace.cached_tokens = output.usage.cached_tokens;
                    trace.completion_tokens = output.usage.completion_tokens;
                    end.set_value();
                  });
  }
  for (std::promise<void>& end : ends) end.get_future().wait();
  return traces;
}

}  // namespace bodega::cli
