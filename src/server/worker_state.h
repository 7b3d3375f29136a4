#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "http/router.h"
#include "server/answers.h"
#include "server/options.h"
#include "server/worker_generation.h"
#include "server/worker_model.h"
#include "server/worker_queue.h"

namespace bodega::server {

class RequestLog;

// What the worker's routes share. The model appears once it is loaded; until then it is null.
struct WorkerState {
  explicit WorkerState(WorkerOptions given);
  ~WorkerState();

  const WorkerOptions options;
  std::unique_ptr<RequestLog> request_log;  // null: off
  std::unique_ptr<WorkerModel> model;       // written once, before `ready`
  std::atomic<bool> ready{false};
  std::atomic<bool> draining{false};
  http::Loop* loop = nullptr;
  WorkQueue compile;  // grammars; the last members: their tasks use the others
  WorkQueue work;

  // Throws Error(kUnavailable) while the model loads or the worker ends.
  WorkerModel& loaded() const;
  DeliveryOptions delivery() const;
};

using ExchangePtr = std::shared_ptr<http::Exchange>;

// Inside a catch block: what a handler threw, as an error of the wire.
void answer_exception(http::Exchange& exchange);

// Runs `handle` on the work queue and answers what it throws.
using Handle =
    std::function<void(WorkerState&, WorkerModel&, const http::Request&, const ExchangePtr&)>;
http::RouteHandler prepared(WorkerState& state, Handle handle);

// The handlers, one file each.
void handle_chat(WorkerState&, WorkerModel&, const http::Request&, const ExchangePtr&);
void handle_completions(WorkerState&, WorkerModel&, const http::Request&, const ExchangePtr&);
void handle_messages(WorkerState&, WorkerModel&, const http::Request&, const ExchangePtr&);
void handle_count_tokens(WorkerState&, WorkerModel&, const http::Request&, const ExchangePtr&);
void handle_responses(WorkerState&, WorkerModel&, const http::Request&, const ExchangePtr&);
void handle_tokenize(WorkerState&, WorkerModel&, const http::Request&, const ExchangePtr&);
void handle_detokenize(WorkerState&, WorkerModel&, const http::Request&, const ExchangePtr&);
void handle_apply_template(WorkerState&, WorkerModel&, const http::Request&, const ExchangePtr&);

// Routes that answer at once, from the event loop.
void add_status_routes(http::Router& router, WorkerState& state);

// All routes of the worker.
http::Router make_worker_router(WorkerState& state);
http::Handler make_worker_handler(std::shared_ptr<const http::Router> router);

}  // namespace bodega::server
