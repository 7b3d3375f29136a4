#include "http/response_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace bodega::http {

namespace beast_http = boost::beast::http;
using ErrorCode = boost::beast::error_code;
using StringView = boost::beast::string_view;

namespace {

constexpr std::uint32_t kHeadBytes = 64 * 1024;

std::string_view view(StringView text) { return {text.data(), text.size()}; }

}  // namespace

class ResponseParser::Impl final : public beast_http::basic_parser<false> {
 public:
  Impl(Events& events, bool bodyless) : events_(events) {
    header_limit(kHeadBytes);
    body_limit(boost::none);
    eager(true);
    skip(bodyless);
  }

  bool interim() const { return status_ / 100 == 1; }

 private:
  void on_response_impl(int status, StringView, int, ErrorCode&) override { status_ = status; }

  void on_field_impl(beast_http::field, StringView name, StringView value, ErrorCode&) override {
    if (is_header_done()) return;
    headers_.emplace_back(to_lower(view(name)), std::string(trim(view(value))));
  }

  void on_header_impl(ErrorCode&) override {
    if (!interim()) events_.on_head(status_, std::move(headers_));
  }

  std::size_t on_body_impl(StringView body, ErrorCode&) override {
    events_.on_body(view(body));
    return body.size();
  }
  std::size_t on_chunk_body_impl(std::uint64_t, StringView body, ErrorCode&) override {
    events_.on_body(view(body));
    return body.size();
  }

  void on_request_impl(beast_http::verb, StringView, StringView, int, ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  void on_chunk_header_impl(std::uint64_t, StringView, ErrorCode&) override {}
  void on_finish_impl(ErrorCode&) override {}

  Events& events_;
  int status_ = 0;
  Headers headers_;
};

ResponseParser::ResponseParser(Events events, bool bodyless)
    : events_(std::move(events)), bodyless_(bodyless) {
  restart();
}
ResponseParser::~ResponseParser() = default;

void ResponseParser::restart() { impl_ = std::make_unique<Impl>(events_, bodyless_); }

bool ResponseParser::done() const { return impl_->is_done() && !impl_->interim(); }

std::size_t ResponseParser::feed(std::string_view bytes) {
  std::size_t used = 0;
  while (!done() && !failed() && used < bytes.size()) {
    ErrorCode error;
    used += impl_->put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), error);
    if (error == beast_http::error::need_more) {
      if (bytes.size() - used > kHeadBytes) failure_ = "a chunk's head is too long";
      break;
    }
    if (error) failure_ = error.message();
    if (impl_->is_done() && impl_->interim()) restart();
  }
  return used;
}

void ResponseParser::feed_eof() {
  if (done() || failed()) return;
  if (!impl_->got_some()) {
    failure_ = "the connection was closed before an answer";
    return;
  }
  ErrorCode error;
  impl_->put_eof(error);
  if (error) failure_ = "the connection was closed inside an answer";
}

}  // namespace bodega::http
