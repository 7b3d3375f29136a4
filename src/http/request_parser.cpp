#include "http/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "http/uri.h"

namespace bodega::http {

namespace beast_http = boost::beast::http;
using ErrorCode = boost::beast::error_code;
using StringView = boost::beast::string_view;

namespace {

std::string_view view(StringView text) { return {text.data(), text.size()}; }

bool needs_length(const std::string& method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

}  // namespace

class RequestParser::Impl final : public beast_http::basic_parser<true> {
 public:
  Impl(std::size_t header_bytes, std::size_t body_bytes) {
    header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(header_bytes, UINT32_MAX)));
    body_limit(body_bytes);
    eager(true);
  }

  Request request;
  int http_version = 11;
  bool started = false;
  bool expects_continue = false;
  int status = 0;
  std::string message;

 private:
  void refuse(int failure_status, std::string why, ErrorCode& error) {
    status = failure_status;
    message = std::move(why);
    error = beast_http::error::bad_value;
  }

  void on_request_impl(beast_http::verb, StringView method, StringView target, int version,
                       ErrorCode& error) override {
    http_version = version;
    request.method = view(method);
    auto parsed = http::parse_target(view(target));
    if (!parsed) return refuse(400, "The request target is malformed.", error);
    request.path = std::move(parsed->path);
    request.query = std::move(parsed->query);
  }

  void on_field_impl(beast_http::field name, StringView name_text, StringView value_text,
                     ErrorCode& error) override {
    if (is_header_done()) return;  // a trailer: nothing here reads them
    const std::string value(trim(view(value_text)));
    if (name == beast_http::field::host && ++hosts_ > 1) {
      return refuse(400, "The request has more than one Host.", error);
    }
    if (name == beast_http::field::transfer_encoding && to_lower(value) != "chunked") {
      return refuse(400, "The only transfer coding served is chunked.", error);
    }
    if (name == beast_http::field::expect) {
      if (to_lower(value) != "100-continue") {
        return refuse(417, "The only expectation served is 100-continue.", error);
      }
      expects_continue = http_version == 11;
    }
    request.headers.emplace_back(to_lower(view(name_text)), value);
  }

  void on_header_impl(ErrorCode& error) override {
    if (http_version == 11 && request.header("host").empty()) {
      return refuse(400, "The request has no Host.", error);
    }
    if (needs_length(request.method) && !chunked() && !content_length()) {
      return refuse(411, "The body needs a Content-Length or a chunked coding.", error);
    }
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}

  // No memory is set aside for a length that a client merely claims.
  std::size_t on_body_impl(StringView body, ErrorCode&) override { return append(body); }
  std::size_t on_chunk_body_impl(std::uint64_t, StringView body, ErrorCode&) override {
    return append(body);
  }
  std::size_t append(StringView body) {
    expects_continue = false;
    request.body.append(body.data(), body.size());
    return body.size();
  }

  void on_chunk_header_impl(std::uint64_t, StringView, ErrorCode&) override {
    expects_continue = false;
  }
  void on_finish_impl(ErrorCode&) override { expects_continue = false; }
  void on_response_impl(int, StringView, int, ErrorCode&) override {}

  int hosts_ = 0;
};

RequestParser::RequestParser(std::size_t header_bytes, std::size_t body_bytes)
    : impl_(std::make_unique<Impl>(header_bytes, body_bytes)), header_bytes_(header_bytes) {}
RequestParser::~RequestParser() = default;

bool RequestParser::started() const { return impl_->started; }
bool RequestParser::head_complete() const { return impl_->is_header_done(); }
bool RequestParser::done() const { return impl_->is_done(); }
bool RequestParser::expects_continue() const {
  return head_complete() && !done() && impl_->expects_continue;
}
bool RequestParser::keep_alive() const { return head_complete() && impl_->keep_alive(); }
int RequestParser::version() const { return impl_->http_version; }
Request& RequestParser::request() { return impl_->request; }

namespace {

struct Failure {
  int status;
  std::string message;
};

Failure describe(const ErrorCode& error) {
  if (error == beast_http::error::header_limit) return {431, "The request head is too long."};
  if (error == beast_http::error::body_limit) return {413, "The request body is too long."};
  if (error == beast_http::error::bad_version) {
    return {400, "The request line does not end as one of HTTP/1.1 does."};
  }
  return {400, "The request is malformed: " + error.message() + "."};
}

}  // namespace

void RequestParser::fail(int status, std::string message) {
  status_ = status;
  message_ = std::move(message);
}

std::size_t RequestParser::feed(std::string_view bytes) {
  std::size_t used = 0;
  if (!impl_->started) {  // empty lines before a request are allowed (RFC 9112, 2.2)
    while (bytes.substr(used, 2) == "\r\n") used += 2;
    if (used == bytes.size() || bytes.substr(used) == "\r") return used;
    impl_->started = true;
  }
  while (!done() && !failed() && used < bytes.size()) {
    ErrorCode error;
    const std::size_t taken =
        impl_->put(boost::asio::const_buffer(bytes.data() + used, bytes.size() - used), error);
    used += taken;
    if (error == beast_http::error::need_more) {
      // A chunk's head and trailers have no bound of their own in Beast.
      if (bytes.size() - used > header_bytes_) fail(431, "A chunk's head or trailer is too long.");
      break;
    }
    if (impl_->status != 0) {
      fail(impl_->status, impl_->message);
    } else if (error) {
      const auto [status, message] = describe(error);
      fail(status, message);
    }
  }
  return used;
}

}  // namespace bodega::http
