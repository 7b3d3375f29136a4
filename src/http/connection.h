#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "http/exchange.h"
#include "http/head_writer.h"
#include "http/io.h"
#include "http/output_queue.h"
#include "http/request_parser.h"
#include "http/server.h"

namespace bodega::http {

struct ServerState;

// One accepted socket: reads requests, hands them over one at a time, writes the answers in order.
// It keeps reading while an answer is made, to notice at once that the peer leaves.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, ServerState& server);

  void start();
  void close();       // now; an answer in progress is told that the peer left
  void close_idle();  // the server drains: closed now when idle, else after the answer
  void refuse(int status, const std::string& message);  // answers without reading, then closes
  bool idle() const { return !exchange_ && !parser_ && output_.empty() && !closing_; }
  // Where room is needed: kept alive for nothing, or silent or slow for a while since it was
  // opened.
  bool gives_way(Clock::time_point now) const;
  Clock::time_point idle_since() const { return idle_since_; }

  // From the exchange in progress.
  void perform(ExchangeOp op);
  void after_output();  // what perform() queued leaves

 private:
  void arm_read();
  void on_readable(ErrorCode error);
  void on_peer_eof();
  void process_input();
  void settle();
  bool may_parse() const;
  void begin_exchange();
  void end_exchange();
  void lose_peer();

  void respond(Response response);
  void start_answer(int status, Headers headers);
  void write_body(std::string bytes);
  void finish_answer();
  void abandon();
  void send_head(int status, Headers headers, std::optional<std::size_t> length, bool chunked);
  void queue(std::string bytes);
  void fail(int status, const std::string& message);

  void on_written(ErrorCode error, std::size_t written);
  void begin_linger();
  Clock::time_point deadline() const;
  void arm_timer();
  void on_timer();

  Socket socket_;
  ServerState& server_;
  Timer timer_;
  Clock::time_point timer_at_ = Clock::time_point::max();
  OutputQueue output_;
  std::string input_;  // read, not yet parsed
  std::unique_ptr<RequestParser> parser_;

  std::shared_ptr<ExchangeState> exchange_;  // the answer in progress
  Request head_;                             // of the request in progress, without its body
  int version_ = 11;
  bool keep_alive_ = true;
  bool answer_started_ = false;
  bool answer_chunked_ = false;

  bool fresh_ = true;        // nothing was ever read
  bool reading_ = false;     // a wait for the socket is under way
  bool processing_ = false;  // process_input() is on the stack
  bool continue_sent_ = false;
  bool peer_eof_ = false;
  bool closing_ = false;    // no further request; closes when the output has left
  bool lingering_ = false;  // our end is shut; waits for the peer to see it
  bool closed_ = false;
  Clock::time_point idle_since_;
  Clock::time_point request_began_;
  Clock::time_point progress_at_;
  Clock::time_point linger_until_;
};

}  // namespace bodega::http
