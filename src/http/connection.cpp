#include "http/connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <exception>
#include <utility>

#include "base/bytes.h"
#include "base/log.h"
#include "http/server_state.h"

namespace bodega::http {
namespace {

// Pipelined bytes read ahead while an answer is in progress; beyond them TCP holds the peer back.
constexpr std::chrono::milliseconds kSilent{500};  // before the first byte of a connection
constexpr std::chrono::seconds kSlow{5};           // for a whole request, where room is needed
constexpr std::size_t kReadAhead = 64 * kKiB;
constexpr std::chrono::seconds kLinger{5};

bool would_block(ErrorCode error) {
  return error == asio::error::would_block || error == asio::error::try_again ||
         error == asio::error::interrupted;
}

}  // namespace

Connection::Connection(Socket socket, ServerState& server)
    : socket_(std::move(socket)),
      server_(server),
      timer_(socket_.get_executor()),
      output_(socket_),
      idle_since_(Clock::now()),
      request_began_(idle_since_),
      progress_at_(idle_since_),
      linger_until_(Clock::time_point::max()) {}

void Connection::start() {
  ErrorCode ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);  // a Unix socket has no such option
  arm_read();
  arm_timer();
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  const auto self = shared_from_this();
  lose_peer();
  ErrorCode ignored;
  socket_.close(ignored);
  timer_.cancel();
  server_.connections.erase(self);
}

void Connection::close_idle() {
  keep_alive_ = false;
  if (idle()) close();
}

bool Connection::gives_way(Clock::time_point now) const {
  if (idle()) return !fresh_ || now - idle_since_ > kSilent;
  return parser_ != nullptr && !exchange_ && now - request_began_ > kSlow;
}

void Connection::refuse(int status, const std::string& message) {
  start();
  fail(status, message);
  settle();
}

// ---- reading

void Connection::arm_read() {
  if (reading_ || closed_ || peer_eof_) return;
  // Only what waits for its turn is bounded here: a request being read has the parser's bounds.
  if (!may_parse() && input_.size() >= kReadAhead) return;
  reading_ = true;
  socket_.async_wait(Socket::wait_read, [this, self = shared_from_this()](ErrorCode error) {
    reading_ = false;
    if (!closed_) on_readable(error);
  });
}

void Connection::on_readable(ErrorCode error) {
  std::size_t count = 0;
  if (!error) count = socket_.read_some(asio::buffer(server_.scratch), error);
  if (would_block(error)) return arm_read();
  if (error == asio::error::eof) return on_peer_eof();
  if (error) return close();
  if (!lingering_ && !closing_) {
    input_.append(server_.scratch.data(), count);
    process_input();
  }
  settle();
}

// A half-closed peer is taken for one that left, as Go's and nginx's servers do: only so is a
// client noticed that goes away in the middle of an answer.
void Connection::on_peer_eof() {
  peer_eof_ = true;
  lose_peer();
  closing_ = true;
  if (output_.empty()) close();
}

bool Connection::may_parse() const {
  return !closed_ && !closing_ && !exchange_ && !input_.empty() &&
         output_.size() <= server_.limits.output_bytes;
}

void Connection::process_input() {
  if (std::exchange(processing_, true)) return;
  while (may_parse()) {
    if (!parser_) {
      parser_ =
          std::make_unique<RequestParser>(server_.limits.header_bytes, server_.limits.body_bytes);
      if (!fresh_) request_began_ = Clock::now();
    }
    input_.erase(0, parser_->feed(input_));
    if (!parser_->started()) {
      parser_.reset();
      break;
    }
    fresh_ = false;
    if (parser_->failed()) {
      fail(parser_->failure_status(), parser_->failure_message());
    } else if (parser_->done()) {
      begin_exchange();
    } else {
      if (parser_->expects_continue() && !std::exchange(continue_sent_, true)) {
        queue("HTTP/1.1 100 Continue\r\n\r\n");
      }
      break;
    }
  }
  processing_ = false;
}

// ---- one exchange

void Connection::begin_exchange() {
  Request request = std::move(parser_->request());
  version_ = parser_->version();
  keep_alive_ = parser_->keep_alive() && !server_.draining;
  parser_.reset();
  continue_sent_ = false;
  answer_started_ = false;
  answer_chunked_ = false;
  request.received = request_began_;
  head_ = {request.method, request.path, request.query, request.headers, {}, request_began_};

  ++server_.open_exchanges;
  exchange_ = std::make_shared<ExchangeState>(server_.loop.core(), this, output_.size());
  const auto state = exchange_;
  try {
    server_.handler(std::move(request), make_exchange(state));
  } catch (const std::exception& error) {
    log_error("A request's handler failed", {{"path", head_.path}, {"error", error.what()}});
  }
  state->drain();  // an answer made at once is sent even if the peer has already shut its end
}

void Connection::end_exchange() {
  const auto state = std::move(exchange_);
  exchange_ = nullptr;
  --server_.open_exchanges;
  state->detach();
  idle_since_ = Clock::now();
  if (!keep_alive_) closing_ = true;
}

void Connection::lose_peer() {
  const auto state = std::move(exchange_);
  exchange_ = nullptr;
  if (!state) return;
  --server_.open_exchanges;
  state->leave();
}

void Connection::perform(ExchangeOp op) {
  using Kind = ExchangeOp::Kind;
  switch (op.kind) {
    case Kind::kRespond:
      return respond(std::move(op.response));
    case Kind::kStart:
      return start_answer(op.response.status, std::move(op.response.headers));
    case Kind::kWrite:
      return write_body(std::move(op.bytes));
    case Kind::kFinish:
      return finish_answer();
    case Kind::kAbort:
      return close();
    case Kind::kAbandon:
      return abandon();
    case Kind::kOnClose:
    case Kind::kOnDrain:
      return;  // kept by the exchange itself
  }
}

void Connection::respond(Response response) {
  if (answer_started_) return close();
  const bool body = head_.method != "HEAD" && status_has_body(response.status);
  std::optional<std::size_t> length;
  if (status_has_body(response.status)) length = response.body.size();
  send_head(response.status, std::move(response.headers), length, false);
  if (body) queue(std::move(response.body));
  end_exchange();
}

void Connection::start_answer(int status, Headers headers) {
  if (std::exchange(answer_started_, true)) return;
  std::optional<std::size_t> length;
  const std::string declared = find_header(headers, "content-length");
  if (!declared.empty()) length = std::strtoull(declared.c_str(), nullptr, 10);
  answer_chunked_ = !length && version_ == 11 && status_has_body(status);
  // To a client of HTTP/1.0 only the end of the connection can tell the end of such an answer.
  if (!length && version_ == 10) keep_alive_ = false;
  send_head(status, std::move(headers), length, answer_chunked_);
}

void Connection::write_body(std::string bytes) {
  if (!answer_started_) start_answer(200, {});
  if (head_.method == "HEAD") return;
  queue(answer_chunked_ ? write_chunk(bytes) : std::move(bytes));
}

void Connection::finish_answer() {
  if (!answer_started_) start_answer(200, {});
  if (answer_chunked_ && head_.method != "HEAD") queue("0\r\n\r\n");
  end_exchange();
}

void Connection::abandon() {
  if (answer_started_) return close();
  respond(server_.render_error(500, "The request was dropped by its handler."));
}

void Connection::send_head(int status, Headers headers, std::optional<std::size_t> length,
                           bool chunked) {
  if (server_.draining) keep_alive_ = false;
  if (server_.filter) server_.filter(head_, status, headers);
  Framing framing;
  framing.version = version_;
  framing.keep_alive = keep_alive_;
  framing.keep_alive_s = static_cast<int>(server_.limits.idle_timeout.count());
  framing.chunked = chunked;
  framing.content_length = length;
  queue(write_head(status, headers, framing));
}

// A request that could not be read: answered, and the connection ends, since where the next request
// would begin is not known.
void Connection::fail(int status, const std::string& message) {
  Response response = server_.render_error(status, message);
  head_ = parser_ ? std::move(parser_->request()) : Request{};
  if (status == 503) response.headers.push_back({"retry-after", "1"});
  keep_alive_ = false;
  closing_ = true;
  parser_.reset();
  input_.clear();
  send_head(response.status, std::move(response.headers), response.body.size(), false);
  if (head_.method != "HEAD") queue(std::move(response.body));
}

// ---- writing

void Connection::queue(std::string bytes) {
  if (closed_) return;
  if (output_.empty()) progress_at_ = Clock::now();
  if (exchange_) exchange_->note_queued(bytes.size(), server_.limits.output_bytes);
  output_.push(std::move(bytes));
}

void Connection::after_output() {
  process_input();  // an ended answer makes way for a pipelined request
  settle();
}

// Whatever happened, what follows from it: bytes leave, the next are awaited, time is watched.
void Connection::settle() {
  if (closed_ || processing_) return;
  output_.flush(shared_from_this(),
                [this](ErrorCode error, std::size_t written) { on_written(error, written); });
  if (closing_ && output_.empty()) begin_linger();
  arm_read();
  arm_timer();
}

void Connection::on_written(ErrorCode error, std::size_t written) {
  if (closed_) return;
  if (error) return close();
  progress_at_ = Clock::now();
  if (exchange_) {
    const auto state = exchange_;
    state->note_written(written, server_.limits.output_bytes);
  }
  if (!closed_ && output_.empty()) after_output();
}

// The peer may still be sending what nobody will read. Closing now would reset the connection and
// could take the answer away from it, so only our end is shut.
void Connection::begin_linger() {
  if (lingering_) return;
  if (peer_eof_) return close();
  lingering_ = true;
  input_.clear();
  linger_until_ = Clock::now() + kLinger;
  ErrorCode error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) close();
}

// ---- time

Clock::time_point Connection::deadline() const {
  if (lingering_) return linger_until_;
  auto at = Clock::time_point::max();
  if (!output_.empty()) at = progress_at_ + server_.limits.write_timeout;
  if (exchange_ || closing_) return at;
  const bool mid_request = parser_ || fresh_;
  return std::min(at, mid_request ? request_began_ + server_.limits.read_deadline
                                  : idle_since_ + server_.limits.idle_timeout);
}

void Connection::arm_timer() {
  const auto at = deadline();
  if (closed_ || at >= timer_at_) return;  // an earlier timer looks again when it fires
  timer_at_ = at;
  timer_.expires_at(at);
  timer_.async_wait([this, self = shared_from_this()](ErrorCode error) {
    if (!error && !closed_) on_timer();
  });
}

void Connection::on_timer() {
  timer_at_ = Clock::time_point::max();
  if (Clock::now() < deadline()) return arm_timer();
  if (lingering_ || !output_.empty() || !parser_) return close();
  fail(408, "The request took too long to arrive.");
  settle();
}

}  // namespace bodega::http
