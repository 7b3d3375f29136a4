#include "cli/client.h"

#include <charconv>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "api/errors.h"
#include "api/json.h"
#include "base/bounded_queue.h"
#include "base/errors.h"

namespace bodega::cli {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr milliseconds kInterruptPoll{50};

// The error that an answer's body describes, or one made of its status.
Error error_of(int status, const std::string& body) {
  try {
    const json::object object = api::parse_object(body);
    const json::object& error = object.at("error").as_object();
    return Error(api::kind_of_status(status), std::string(error.at("message").as_string()));
  } catch (const std::exception&) {
    return Error(api::kind_of_status(status),
                 "The server answered " + std::to_string(status) + ".");
  }
}

json::object object_of(int status, const std::string& body) {
  if (status != 200) throw error_of(status, body);
  return api::parse_object(body, "The server's answer");
}

// What a streaming call sends from the loop's thread to the caller's.
struct StreamNews {
  std::string payload;
  std::optional<Error> error;
  bool done = false;
};
using StreamQueue = BoundedQueue<StreamNews>;

http::ClientEvents stream_events(const std::shared_ptr<StreamQueue>& queue) {
  struct State {
    int status = 0;
    std::string error_body;
    EventReader reader;
  };
  const auto state = std::make_shared<State>();
  http::ClientEvents events;
  events.on_head = [state](int status, const http::Headers&) { state->status = status; };
  events.on_body = [state, queue](std::string_view bytes) {
    if (state->status != 200) {
      state->error_body += bytes;
      return;
    }
    state->reader.read(bytes, [&](std::string_view payload) {
      if (payload != "[DONE]") queue->push({std::string(payload), std::nullopt, false});
    });
  };
  events.on_done = [state, queue] {
    StreamNews end{{}, std::nullopt, true};
    if (state->status != 200) end.error = error_of(state->status, state->error_body);
    queue->push(std::move(end));
  };
  events.on_error = [queue](const std::string& reason) {
    queue->push({{}, Error(ErrorKind::kUnavailable, "The server is gone: " + reason), true});
  };
  return events;
}

}  // namespace

ServerAddress parse_url(std::string_view url) {
  const std::string whole(url);
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) {
    throw Error(ErrorKind::kConfig, "The address " + whole + " must begin with http://.");
  }
  url.remove_prefix(kScheme.size());
  ServerAddress address;
  const std::size_t slash = std::min(url.find('/'), url.size());
  address.prefix = url.substr(slash);
  while (address.prefix.ends_with('/')) address.prefix.pop_back();
  if (address.prefix.ends_with("/v1")) address.prefix.resize(address.prefix.size() - 3);
  std::string_view host = url.substr(0, slash);
  const std::size_t colon = host.rfind(':');
  address.endpoint.port = 80;
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    const std::string_view digits = host.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), address.endpoint.port);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
      throw Error(ErrorKind::kConfig, "The address " + whole + " has no valid port.");
    }
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) throw Error(ErrorKind::kConfig, "The address " + whole + " has no host.");
  address.endpoint.host = host;
  return address;
}

http::ClientRequest make_request(const ServerAddress& address, std::string method,
                                 std::string_view path, std::string body) {
  http::ClientRequest request;
  request.method = std::move(method);
  request.target = address.prefix + std::string(path);
  request.body = std::move(body);
  if (!request.body.empty()) request.headers.emplace_back("content-type", "application/json");
  if (!address.api_key.empty()) {
    request.headers.emplace_back("authorization", "Bearer " + address.api_key);
  }
  return request;
}

void EventReader::read(std::string_view bytes,
                       const std::function<void(std::string_view payload)>& on_payload) {
  constexpr std::string_view kData = "data: ";
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    line_ += bytes.substr(0, end);
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    std::string_view line = line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kData)) on_payload(line.substr(kData.size()));
    line_.clear();
  }
}

Client::Client(ServerAddress address) : address_(std::move(address)) { loop_.start(); }

Client::Answer Client::call(std::string method, std::string_view path, std::string body) {
  const auto promise = std::make_shared<std::promise<Answer>>();
  std::future<Answer> answer = promise->get_future();
  http::ClientRequest request = make_request(address_, std::move(method), path, std::move(body));
  loop_.post([this, promise, request = std::move(request)] {
    http::fetch(loop_, address_.endpoint, request, [promise](int status, std::string text) {
      promise->set_value({status, std::move(text)});
    });
  });
  Answer got = answer.get();
  if (got.status == 0) {
    throw Error(ErrorKind::kUnavailable, "There is no server at " + address_.endpoint.host + ":" +
                                             std::to_string(address_.endpoint.port) + ".");
  }
  return got;
}

json::object Client::get(std::string_view path) {
  const Answer answer = call("GET", path, {});
  return object_of(answer.status, answer.body);
}

json::object Client::post(std::string_view path, const json::object& body) {
  const Answer answer = call("POST", path, api::to_text(body));
  return object_of(answer.status, answer.body);
}

bool Client::is_up() {
  try {
    call("GET", "/health", {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Client::stream(std::string_view path, const json::object& body,
                    const std::function<void(const json::object&)>& on_event,
                    const std::function<bool()>& interrupted) {
  const auto queue = std::make_shared<StreamQueue>(1 << 16);
  const auto running = std::make_shared<std::shared_ptr<http::ClientCall>>();  // loop's thread
  http::ClientRequest request = make_request(address_, "POST", path, api::to_text(body));
  loop_.post([this, queue, running, request = std::move(request)] {
    *running = http::send_request(loop_, address_.endpoint, request, stream_events(queue));
  });
  while (!interrupted()) {
    std::optional<StreamNews> news = queue->pop_for(kInterruptPoll);
    if (!news) continue;
    if (news->error) throw *news->error;
    if (news->done) return;
    const json::object event = api::parse_object(news->payload, "The server's event");
    if (event.contains("error")) throw error_of(500, news->payload);
    on_event(event);
  }
  loop_.post([running] {
    if (*running) (*running)->cancel();
  });
}

}  // namespace bodega::cli
