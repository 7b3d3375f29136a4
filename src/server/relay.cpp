#include "server/relay.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "api/errors.h"
#include "base/errors.h"
#include "base/log.h"
#include "http/sse.h"
#include "server/answers.h"

namespace bodega::server {
namespace {

// What belongs to the worker's connection, not to the client's.
constexpr std::array<std::string_view, 5> kNotTheClients = {"connection", "keep-alive", "date",
                                                            "transfer-encoding", "x-request-id"};

class Relay : public std::enable_shared_from_this<Relay> {
 public:
  Relay(RelayTarget target, std::shared_ptr<http::Exchange> exchange)
      : target_(std::move(target)), exchange_(std::move(exchange)) {}

  void begin(http::Loop& loop) {
    const auto self = shared_from_this();
    http::ClientEvents events;
    events.on_head = [self](int status, http::Headers headers) {
      self->on_head(status, std::move(headers));
    };
    events.on_body = [self](std::string_view bytes) { self->write(self->whole_events(bytes)); };
    events.on_done = [self] { self->on_done(); };
    events.on_error = [self](const std::string& reason) { self->on_error(reason); };
    call_ =
        http::send_request(loop, target_.endpoint, std::move(target_.request), std::move(events));
    exchange_->on_close([self] { self->call_->cancel(); });
    exchange_->on_drain([self] { self->call_->pause(false); });
  }

 private:
  void on_head(int status, http::Headers headers) {
    events_ = http::media_type(http::find_header(headers, "content-type")) == http::kSseMediaType;
    std::erase_if(headers, [](const auto& header) {
      return std::count(kNotTheClients.begin(), kNotTheClients.end(), header.first) != 0;
    });
    started_ = true;
    exchange_->start(status, std::move(headers));
  }

  std::string whole_events(std::string_view bytes) {
    return events_ ? cutter_.take(bytes) : std::string(bytes);
  }

  void write(std::string bytes) {
    exchange_->write(std::move(bytes));
    if (exchange_->queued_bytes() > target_.output_bytes) call_->pause(true);
  }

  void on_done() {
    exchange_->write(cutter_.rest());
    exchange_->finish();
  }

  void on_error(const std::string& reason) {
    log_warn("A worker left a request unanswered", {{"reason", reason}});
    const Error error = target_.gone();
    if (!started_) return respond_error(*exchange_, error);
    if (!events_) return exchange_->abort();  // a declared length or a chunk is missing: say so
    exchange_->write(http::sse_event(api::error_body(error)));
    exchange_->finish();
  }

  RelayTarget target_;
  const std::shared_ptr<http::Exchange> exchange_;
  std::shared_ptr<http::ClientCall> call_;
  http::SseCutter cutter_;
  bool started_ = false;
  bool events_ = false;  // the answer is an event stream
};

}  // namespace

void relay(http::Loop& loop, RelayTarget target, std::shared_ptr<http::Exchange> exchange) {
  std::make_shared<Relay>(std::move(target), std::move(exchange))->begin(loop);
}

}  // namespace bodega::server
