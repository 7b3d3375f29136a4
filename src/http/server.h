#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "http/loop.h"
#include "http/message.h"

// Sockets, limits, SSE framing. Knows no JSON and no model.
namespace bodega::http {

// One request in progress. Every member may be called from any thread; calls are carried out in
// order on the server's thread. After the peer is gone they do nothing and `closed()` is true.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void respond(Response response) = 0;  // whole answer; ends the exchange
  // Begins an answer in pieces. It is chunked, unless the headers carry a content-length: then the
  // pieces are written as they are and have to add up to it.
  virtual void start(int status, Headers headers) = 0;
  virtual void write(std::string bytes) = 0;  // one chunk, one write
  virtual void finish() = 0;                  // ends a chunked answer
  virtual void abort() = 0;                   // closes without a proper end
  virtual bool closed() const = 0;
  virtual std::size_t queued_bytes() const = 0;  // written by us, not yet taken by the socket
  // Called once, on the server's thread, when the peer leaves before the answer ended (or when
  // write_timeout passes without progress). Called at once if that has already happened.
  virtual void on_close(std::function<void()> callback) = 0;
  // Called whenever the queue has drained below half of Limits::output_bytes after exceeding it.
  virtual void on_drain(std::function<void()> callback) = 0;
};

// Called on the server's thread. An Exchange that is dropped before its answer ended answers 500,
// or is cut where the answer had begun; so does one whose handler throws.
using Handler = std::function<void(Request, std::shared_ptr<Exchange>)>;

// Maps a failure of the HTTP layer itself (400, 408, 411, 413, 417, 431, 500, 503) to an answer.
using ErrorRenderer = std::function<Response(int status, std::string message)>;

// May add headers to every answer, failures of the HTTP layer included. The request has no body,
// and is empty where none could be read.
using HeadFilter = std::function<void(const Request& request, int status, Headers& headers)>;

struct Limits {
  std::size_t header_bytes = 16 * kKiB;
  std::size_t body_bytes = 64 * kMiB;
  std::size_t output_bytes = 256 * kKiB;  // per exchange; beyond it queued_bytes() tells to pause
  int connections = 2048;  // one more closes the longest idle one, or is answered 503
  std::chrono::seconds read_deadline{30};  // a whole request, first to last byte
  std::chrono::seconds idle_timeout{75};   // keep-alive
  std::chrono::seconds write_timeout{60};  // without any progress of the peer
};

struct Listen {
  std::string host = "127.0.0.1";  // every address of the name; ignored for a Unix socket
  std::uint16_t port = 0;          // 0 = any free one
  std::string unix_path;           // not empty: a Unix socket
};

// HTTP/1.1 server on one thread. Throws Error(kConfig) from the constructor when it cannot bind.
class Server {
 public:
  Server(const Listen& listen, const Limits& limits, Handler handler, ErrorRenderer render_error,
         HeadFilter filter = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  void start();           // begins to accept; returns at once
  void stop_accepting();  // closes the listener, keeps running exchanges
  void stop();            // closes everything, joins the thread
  int open_exchanges() const;
  Loop& loop();  // for timers and clients that share the thread

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bodega::http
