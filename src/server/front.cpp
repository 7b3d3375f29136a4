#include "server/front.h"

#include <array>
#include <utility>

#include "api/openapi.h"
#include "base/bytes.h"
#include "base/errors.h"
#include "base/log.h"
#include "http/router.h"
#include "registry/registry.h"
#include "server/answers.h"
#include "server/api_keys.h"
#include "server/browser_policy.h"
#include "server/front_body.h"
#include "server/front_status.h"
#include "server/model_names.h"
#include "server/relay.h"
#include "server/worker_queue.h"
#include "server/worker_reports.h"

namespace bodega::server {
namespace {

using ExchangePtr = std::shared_ptr<http::Exchange>;

constexpr auto kRelayed = std::to_array<const char*>(
    {"/v1/chat/completions", "/chat/completions", "/v1/completions", "/v1/messages",
     "/v1/messages/count_tokens", "/v1/responses", "/tokenize", "/detokenize", "/apply-template"});

// A longer body is parsed beside the event loop, so that it holds up nobody's stream.
constexpr std::size_t kLongBody = 64 * kKiB;
constexpr std::size_t kParseBacklog = 1024;

// Calls `work`; what it throws is the answer.
template <class Work>
void answering(http::Exchange& exchange, Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    respond_error(exchange, error);
  } catch (const std::exception& error) {
    log_error("A request failed", {{"error", error.what()}});
    respond_error(exchange, Error(ErrorKind::kInternal, "The server failed on this request."));
  }
}

registry::Environment environment_of(http::Loop& loop) {
  registry::Environment environment;
  environment.post = [&loop](std::function<void()> task) { loop.post(std::move(task)); };
  environment.after = [&loop](std::chrono::milliseconds delay, std::function<void()> task) {
    loop.after(delay, std::move(task));
  };
  environment.now = [] { return std::chrono::steady_clock::now(); };
  environment.launch = registry::spawn_process;
  environment.probe = [&loop](const std::string& socket_path, auto on_answer) {
    probe_worker(loop, socket_path, std::move(on_answer));
  };
  return environment;
}

http::Listen listen_on(const ServerOptions& server) {
  http::Listen listen;
  listen.host = server.host;
  listen.port = static_cast<std::uint16_t>(server.port);
  return listen;
}

// What a worker may see of a client's headers: no key, no cookie, nothing of the connection.
http::Headers headers_for_worker(const http::Request& request) {
  http::Headers headers;
  for (const auto& header : request.headers) {
    const std::string& name = header.first;
    const bool own = name.starts_with("x-") && name != "x-api-key";
    if (own || name == "content-type" || name == "accept") headers.push_back(header);
  }
  return headers;
}

}  // namespace

class Front::Impl {
 public:
  explicit Impl(ServeOptions options)
      : options_(std::move(options)),
        policy_(options_.server),
        keys_(options_.server.api_keys),
        names_(options_.server.model_aliases),
        server_(
            listen_on(options_.server), limits_from(options_.limits),
            [this](http::Request request, const ExchangePtr& exchange) {
              handle(std::move(request), exchange);
            },
            render_http_failure,
            [this](const http::Request& request, int status, http::Headers& headers) {
              finish_head(request, status, headers);
            }),
        registry_(environment_of(server_.loop())),
        status_(server_.loop(), registry_),
        parsing_(1, kParseBacklog) {
    add_routes();
  }

  ~Impl() { stop(); }

  void start(std::function<void(const std::string&, const std::string&)> on_loaded) {
    server_.loop().post([this, on_loaded = std::move(on_loaded)] {
      for (const ModelOptions& model : options_.models) load(model, on_loaded);
    });
    server_.start();
  }

  void stop() {
    parsing_.stop();
    server_.stop();
  }

  http::Server& server() { return server_; }

  void unload_all(std::chrono::milliseconds grace, std::function<void()> on_gone) {
    server_.loop().post(
        [this, grace, on_gone = std::move(on_gone)] { registry_.unload_all(grace, on_gone); });
  }

 private:
  void load(const ModelOptions& model,
            const std::function<void(const std::string&, const std::string&)>& on_loaded) {
    registry_.load(
        model.model_id,
        [this, model](const std::string& socket_path) {
          return worker_command(model, socket_path);
        },
        [on_loaded](registry::Worker& worker) {
          on_loaded(worker.id(), worker.ready() ? "" : worker.reason());
        });
  }

  std::vector<std::string> worker_command(const ModelOptions& model,
                                          const std::string& socket_path) const {
    WorkerOptions worker;
    worker.socket_path = socket_path;
    worker.lifeline_fd = registry::kLifelineFd;
    worker.strict = options_.server.strict;
    worker.limits = options_.limits;
    worker.model = model;
    std::vector<std::string> command = options_.server.worker_command;
    if (command.empty()) command = {registry::own_program(), "worker"};
    const std::vector<std::string> arguments = worker_arguments(worker);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }

  void add_routes() {
    add_get("/health", [this](const auto& exchange, const auto&) { status_.health(exchange); });
    add_get("/v1/models", [this](const auto& exchange, const auto&) { status_.models(exchange); });
    add_get("/v1/models/{id}", [this](const auto& exchange, const std::string& id) {
      status_.model(names_.resolve(registry_, id), exchange);
    });
    add_get("/v1/queue/stats",
            [this](const auto& exchange, const auto&) { status_.queue_stats(exchange); });
    add_get("/v1/admin/loaded-models",
            [this](const auto& exchange, const auto&) { status_.loaded_models(exchange); });
    add_get("/openapi.json", [](const auto& exchange, const auto&) {
      respond_json(*exchange, api::openapi_document());
    });
    add_get("/metrics", [this](const auto& exchange, const auto&) { status_.metrics(exchange); });
    for (const char* path : kRelayed) {
      router_.add("POST", path,
                  [this](http::Request request, const ExchangePtr& exchange, const auto&) {
                    read_body(std::move(request), exchange);
                  });
    }
  }

  void add_get(const char* path,
               std::function<void(const ExchangePtr&, const std::string& parameter)> answer) {
    router_.add("GET", path,
                [answer = std::move(answer)](const http::Request&, const ExchangePtr& exchange,
                                             const std::string& parameter) {
                  answer(exchange, parameter);
                });
  }

  void handle(http::Request request, const ExchangePtr& exchange) {
    answering(*exchange, [&] {
      policy_.check(request);
      const http::Router::Match match = router_.find(request.method, request.path);
      if (BrowserPolicy::is_preflight(request) && !match.allow.empty()) {
        return exchange->respond(policy_.preflight(request, match.allow));
      }
      if (request.path != "/health" && request.path != "/health/") keys_.check(request);
      if (match.handler != nullptr) {
        return (*match.handler)(std::move(request), exchange, match.parameter);
      }
      if (match.allow.empty()) {
        throw Error(ErrorKind::kNotFound, "There is no route " + request.path + ".");
      }
      if (request.method == "OPTIONS")
        return exchange->respond({204, {{"allow", match.allow}}, {}});
      respond_method_not_allowed(*exchange, request.path, match.allow);
    });
  }

  // The server's thread; every answer's head passes here.
  void finish_head(const http::Request& request, int status, http::Headers& headers) const {
    policy_.add_cors(request, headers);
    const std::string id = request.header("x-request-id");
    if (!id.empty()) headers.emplace_back("x-request-id", id);
    if (options_.server.access_log) log_answer(request, status, id);
  }

  static void log_answer(const http::Request& request, int status, const std::string& id) {
    const auto taken = std::chrono::steady_clock::now() - request.received;
    const double ms = std::chrono::duration<double, std::milli>(taken).count();
    log_info("Answer", {{"method", request.method},
                        {"path", request.path},
                        {"status", status},
                        {"first_byte_ms", request.method.empty() ? 0.0 : ms},
                        {"request_id", id}});
  }

  void read_body(http::Request request, const ExchangePtr& exchange) {
    if (request.body.size() <= kLongBody) {
      const auto name = model_in_body(request.body);
      return route(std::move(request), name, exchange);
    }
    auto shared = std::make_shared<http::Request>(std::move(request));
    parsing_.post([this, shared, exchange] {
      answering(*exchange, [&] {
        const auto name = model_in_body(shared->body);
        server_.loop().post([this, shared, name, exchange] {
          answering(*exchange, [&] { route(std::move(*shared), name, exchange); });
        });
      });
    });
  }

  void route(http::Request request, const std::optional<std::string>& name,
             const ExchangePtr& exchange) {
    registry::Worker& worker = names_.resolve(registry_, name);
    if (name && *name != worker.id()) request.body = with_model(request.body, worker.id());
    send_to_worker(worker, std::move(request), exchange);
  }

  void send_to_worker(registry::Worker& worker, http::Request request,
                      const ExchangePtr& exchange) {
    if (!worker.ready()) throw not_ready(worker);
    RelayTarget target;
    target.endpoint.unix_path = worker.socket_path();
    target.request.method = request.method == "HEAD" ? "GET" : request.method;
    target.request.target = request.path;
    if (request.path.back() == '/') target.request.target.pop_back();
    target.request.headers = headers_for_worker(request);
    target.request.body = std::move(request.body);
    target.output_bytes = options_.limits.output_bytes;
    target.gone = [weak = worker.weak_from_this()] {
      const auto known = weak.lock();
      return known ? gone(*known) : Error(ErrorKind::kUnavailable, "The model was unloaded.");
    };
    relay(server_.loop(), std::move(target), exchange);
  }

  static Error gone(const registry::Worker& worker) {
    const bool stopping = worker.state() == registry::WorkerState::kStopping ||
                          worker.state() == registry::WorkerState::kStopped;
    Error error(ErrorKind::kUnavailable,
                stopping ? "The server ended before this answer did."
                         : "The model's worker ended while it answered this request. It is being "
                           "restarted: try again.");
    error.retry_after_s = worker.retry_after_s();
    return error;
  }

  static Error not_ready(const registry::Worker& worker) {
    Error error(ErrorKind::kUnavailable, "The model \"" + worker.id() + "\" is " +
                                             registry::name_of(worker.state()) + ". Try again.");
    error.retry_after_s = worker.retry_after_s();
    return error;
  }

  const ServeOptions options_;
  const BrowserPolicy policy_;
  const ApiKeys keys_;
  const ModelNames names_;
  http::Router router_;
  http::Server server_;
  registry::Registry registry_;
  FrontStatus status_;
  WorkQueue parsing_;
};

Front::Front(ServeOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Front::~Front() = default;

std::uint16_t Front::port() const { return impl_->server().port(); }
void Front::start(
    std::function<void(const std::string& model, const std::string& failure)> on_loaded) {
  impl_->start(std::move(on_loaded));
}
void Front::stop_accepting() { impl_->server().stop_accepting(); }
int Front::open_answers() const { return impl_->server().open_exchanges(); }
void Front::unload_all(std::chrono::milliseconds grace, std::function<void()> on_gone) {
  impl_->unload_all(grace, std::move(on_gone));
}
void Front::stop() { impl_->stop(); }

}  // namespace bodega::server
