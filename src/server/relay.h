#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/errors.h"
#include "http/client.h"
#include "http/server.h"

namespace bodega::server {

struct RelayTarget {
  http::Endpoint endpoint;
  http::ClientRequest request;
  std::size_t output_bytes = 0;  // beyond so much unread by the client the worker is held back
  std::function<Error()> gone;   // asked when the worker left the request unanswered
};

// Sends a request to a worker and its answer to the client, piece by piece in both directions: a
// client that reads slowly holds the worker back, one that leaves ends the worker's request at
// once. A worker that dies gives a typed 503, or an error event where a stream had begun. Loop's
// thread.
void relay(http::Loop& loop, RelayTarget target, std::shared_ptr<http::Exchange> exchange);

}  // namespace bodega::server
