#include "http/client.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

#include "http/loop_core.h"
#include "http/output_queue.h"
#include "http/response_parser.h"

namespace bodega::http {
namespace {

constexpr std::chrono::milliseconds kConnectRetry{5};  // a full backlog of a Unix socket
constexpr int kConnectRetries = 200;
constexpr std::size_t kReadBytes = 16384;

std::string request_text(const ClientRequest& request, const Endpoint& endpoint) {
  std::string out = request.method + " " + request.target + " HTTP/1.1\r\nhost: ";
  out += endpoint.unix_path.empty() ? endpoint.host + ":" + std::to_string(endpoint.port)
                                    : std::string("localhost");
  out += "\r\nconnection: close\r\n";
  for (const auto& [name, value] : request.headers) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  if (!request.body.empty() || request.method == "POST") {
    out += "content-length: " + std::to_string(request.body.size()) + "\r\n";
  }
  return out + "\r\n";
}

class Call final : public ClientCall, public std::enable_shared_from_this<Call> {
 public:
  Call(Loop::Core& core, Endpoint endpoint, ClientRequest request, ClientEvents events)
      : socket_(core.io),
        timer_(core.io),
        retry_(core.io),
        resolver_(core.io),
        endpoint_(std::move(endpoint)),
        events_(std::move(events)),
        output_(socket_),
        parser_({[this](int status, Headers headers) { on_head(status, std::move(headers)); },
                 [this](std::string_view bytes) { on_body(bytes); }},
                request.method == "HEAD"),
        timeout_(request.timeout) {
    output_.push(request_text(request, endpoint_));
    output_.push(std::move(request.body));
  }

  void begin() {
    if (timeout_.count() > 0) {
      timer_.expires_after(timeout_);
      timer_.async_wait([this, self = shared_from_this()](ErrorCode error) {
        if (!error) fail("it took too long");
      });
    }
    if (endpoint_.unix_path.empty()) return resolve();
    addresses_.emplace_back(asio::local::stream_protocol::endpoint(endpoint_.unix_path));
    connect(0);
  }

  void cancel() override {
    if (std::exchange(ended_, true)) return;
    close();
  }

  void pause(bool paused) override {
    paused_ = paused;
    if (connected_) read();
  }

 private:
  using Address = asio::generic::stream_protocol::endpoint;

  void resolve() {
    resolver_.async_resolve(
        endpoint_.host, std::to_string(endpoint_.port),
        [this, self = shared_from_this()](ErrorCode error, const auto& results) {
          if (error) return fail(error.message());
          for (const auto& entry : results) addresses_.emplace_back(entry.endpoint());
          connect(0);
        });
  }

  void connect(std::size_t index) {
    if (ended_) return;
    if (index >= addresses_.size()) return fail("no address answers");
    ErrorCode ignored;
    socket_.close(ignored);
    socket_.async_connect(addresses_[index],
                          [this, self = shared_from_this(), index](ErrorCode error) {
                            if (ended_) return;
                            if (error == asio::error::try_again && ++retries_ < kConnectRetries)
                              return connect_later(index);
                            if (error && index + 1 == addresses_.size())
                              return fail(error.message());
                            if (error) return connect(index + 1);
                            on_connected();
                          });
  }

  void connect_later(std::size_t index) {
    retry_.expires_after(kConnectRetry);
    retry_.async_wait([this, self = shared_from_this(), index](ErrorCode error) {
      if (!error) connect(index);
    });
  }

  void on_connected() {
    connected_ = true;
    ErrorCode ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    // A write that fails is no news: the peer may have answered without reading, and the read
    // tells.
    output_.flush(shared_from_this(), [](ErrorCode, std::size_t) {});
    read();
  }

  void read() {
    if (reading_ || paused_ || ended_) return;
    reading_ = true;
    socket_.async_read_some(asio::buffer(buffer_),
                            [this, self = shared_from_this()](ErrorCode error, std::size_t count) {
                              reading_ = false;
                              if (!ended_) on_read(error, count);
                            });
  }

  void on_read(ErrorCode error, std::size_t count) {
    if (error) {
      parser_.feed_eof();
    } else {
      input_.append(buffer_.data(), count);
      input_.erase(0, parser_.feed(input_));
    }
    if (ended_) return;  // an event cancelled the call
    if (parser_.failed()) return fail(parser_.failure());
    if (!parser_.done()) return read();
    ended_ = true;
    close();
    events_.on_done();
  }

  void on_head(int status, Headers headers) {
    if (!ended_) events_.on_head(status, std::move(headers));
  }
  void on_body(std::string_view bytes) {
    if (!ended_) events_.on_body(bytes);
  }

  void fail(const std::string& reason) {
    if (std::exchange(ended_, true)) return;
    close();
    events_.on_error(reason);
  }

  void close() {
    ErrorCode ignored;
    socket_.close(ignored);
    timer_.cancel();
    retry_.cancel();
    resolver_.cancel();
    // What the events captured may hold this call; let go of it, but not while one of them runs.
    asio::post(socket_.get_executor(), [this, self = shared_from_this()] { events_ = {}; });
  }

  Socket socket_;
  Timer timer_;
  Timer retry_;
  asio::ip::basic_resolver<asio::ip::tcp, Executor> resolver_;
  const Endpoint endpoint_;
  ClientEvents events_;
  OutputQueue output_;
  ResponseParser parser_;
  const std::chrono::milliseconds timeout_;
  std::vector<Address> addresses_;
  std::string input_;
  std::array<char, kReadBytes> buffer_{};
  int retries_ = 0;
  bool connected_ = false;
  bool reading_ = false;
  bool paused_ = false;
  bool ended_ = false;
};

}  // namespace

std::shared_ptr<ClientCall> send_request(Loop& loop, const Endpoint& endpoint,
                                         ClientRequest request, ClientEvents events) {
  auto call = std::make_shared<Call>(*loop.core(), endpoint, std::move(request), std::move(events));
  call->begin();
  return call;
}

void fetch(Loop& loop, const Endpoint& endpoint, ClientRequest request,
           const std::function<void(int status, const std::string& body)>& on_answer) {
  struct Answer {
    int status = 0;
    std::string body;
  };
  const auto answer = std::make_shared<Answer>();
  ClientEvents events;
  events.on_head = [answer](int status, const Headers&) { answer->status = status; };
  events.on_body = [answer](std::string_view bytes) { answer->body += bytes; };
  events.on_done = [answer, on_answer] { on_answer(answer->status, answer->body); };
  events.on_error = [on_answer](const std::string&) { on_answer(0, {}); };
  send_request(loop, endpoint, std::move(request), std::move(events));
}

}  // namespace bodega::http
