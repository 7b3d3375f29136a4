#include "server/worker_state.h"

#include <fmt/format.h>

#include "base/log.h"
#include "server/worker_log.h"

namespace bodega::server {
namespace {

constexpr int kPrepareThreads = 2;
constexpr int kCompileThreads = 2;
constexpr std::size_t kPrepareBacklog = 1024;

Error unavailable(const char* message) {
  Error error(ErrorKind::kUnavailable, message);
  error.retry_after_s = 1;
  return error;
}

}  // namespace

// What a handler threw, as an error of the wire. Anything that is not ours is our bug.
void answer_exception(http::Exchange& exchange) {
  try {
    throw;
  } catch (const Error& error) {
    respond_error(exchange, error);
  } catch (const std::exception& error) {
    log_error("A request handler failed.", {{"what", error.what()}});
    respond_error(exchange, Error(ErrorKind::kInternal, "The server failed on this request."));
  }
}

WorkerState::WorkerState(WorkerOptions given)
    : options(std::move(given)),
      compile(kCompileThreads, kPrepareBacklog),
      work(kPrepareThreads, kPrepareBacklog) {
  if (!options.model.log_requests.empty()) {
    request_log = std::make_unique<RequestLog>(options.model.log_requests);
  }
}

WorkerState::~WorkerState() = default;

WorkerModel& WorkerState::loaded() const {
  if (draining) throw unavailable("The model is being unloaded.");
  if (!ready) throw unavailable("The model is still loading. Try again soon.");
  return *model;
}

DeliveryOptions WorkerState::delivery() const {
  DeliveryOptions delivery;
  delivery.output_bytes = options.limits.output_bytes;
  return delivery;
}

http::RouteHandler prepared(WorkerState& state, Handle handle) {
  return [&state, handle = std::move(handle)](http::Request request, const ExchangePtr& exchange,
                                              const std::string& /*parameter*/) {
    auto shared = std::make_shared<http::Request>(std::move(request));
    try {
      WorkerModel& model = state.loaded();
      state.work.post([&state, &model, handle, shared, exchange] {
        if (exchange->closed()) return;
        try {
          handle(state, model, *shared, exchange);
        } catch (...) {
          answer_exception(*exchange);
        }
      });
    } catch (...) {
      answer_exception(*exchange);
    }
  };
}

http::Router make_worker_router(WorkerState& state) {
  http::Router router;
  router.add("POST", "/v1/chat/completions", prepared(state, handle_chat));
  router.add("POST", "/chat/completions", prepared(state, handle_chat));
  router.add("POST", "/v1/completions", prepared(state, handle_completions));
  router.add("POST", "/v1/messages", prepared(state, handle_messages));
  router.add("POST", "/v1/messages/count_tokens", prepared(state, handle_count_tokens));
  router.add("POST", "/v1/responses", prepared(state, handle_responses));
  router.add("POST", "/tokenize", prepared(state, handle_tokenize));
  router.add("POST", "/detokenize", prepared(state, handle_detokenize));
  router.add("POST", "/apply-template", prepared(state, handle_apply_template));
  add_status_routes(router, state);
  return router;
}

http::Handler make_worker_handler(std::shared_ptr<const http::Router> router) {
  return [router = std::move(router)](http::Request request, ExchangePtr exchange) {
    const http::Router::Match match = router->find(request.method, request.path);
    if (match.handler != nullptr) {
      (*match.handler)(std::move(request), std::move(exchange), match.parameter);
      return;
    }
    if (match.allow.empty()) {
      respond_error(*exchange, Error(ErrorKind::kNotFound,
                                     fmt::format("There is no route {}.", request.path)));
      return;
    }
    respond_method_not_allowed(*exchange, request.path, match.allow);
  };
}

}  // namespace bodega::server
