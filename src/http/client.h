#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/loop.h"
#include "http/message.h"

namespace bodega::http {

struct Endpoint {
  std::string unix_path;  // not empty: a Unix socket
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";  // encoded path and query
  Headers headers;           // host, connection and content-length are added
  std::string body;
  std::chrono::milliseconds timeout{0};  // for the whole call; 0 = none
};

// Called on the loop's thread, never from inside send_request(). The last is on_done or on_error.
struct ClientEvents {
  std::function<void(int status, Headers headers)> on_head;
  std::function<void(std::string_view bytes)> on_body;
  std::function<void()> on_done;
  std::function<void(const std::string& reason)> on_error;  // refused, cut, malformed, timed out
};

// A call in progress; used on the loop's thread only. Dropping the pointer does not end the call.
class ClientCall {
 public:
  virtual ~ClientCall() = default;
  virtual void cancel() = 0;            // closes the connection; no event follows
  virtual void pause(bool paused) = 0;  // stops reading: the peer is held back by TCP
};

// HTTP/1.1 over a connection of its own, which a Unix socket makes in microseconds: a cancelled
// call is a closed connection, and none can be stale. Loop's thread only.
std::shared_ptr<ClientCall> send_request(Loop& loop, const Endpoint& endpoint,
                                         ClientRequest request, ClientEvents events);

// A whole small answer at once; status 0 when there was none. Loop's thread only.
void fetch(Loop& loop, const Endpoint& endpoint, ClientRequest request,
           const std::function<void(int status, const std::string& body)>& on_answer);

}  // namespace bodega::http
