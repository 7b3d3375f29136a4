#pragma once

#include <boost/json.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "http/client.h"

namespace bodega::cli {

// Where a server is, from "http://host:port/prefix".
struct ServerAddress {
  http::Endpoint endpoint;
  std::string prefix;   // "" or "/prefix", before every path
  std::string api_key;  // "" = none
};
ServerAddress parse_url(std::string_view url);  // throws Error(kConfig)

http::ClientRequest make_request(const ServerAddress& address, std::string method,
                                 std::string_view path, std::string body);

// The payloads of the `data:` lines in a stream of bytes, however it is cut.
class EventReader {
 public:
  void read(std::string_view bytes,
            const std::function<void(std::string_view payload)>& on_payload);

 private:
  std::string line_;
};

// Blocking calls to one server, for verbs that do one thing at a time.
class Client {
 public:
  explicit Client(ServerAddress address);
  const ServerAddress& address() const { return address_; }

  // Throws Error: kUnavailable when there is no answer, else what the server's error object says.
  boost::json::object get(std::string_view path);
  boost::json::object post(std::string_view path, const boost::json::object& body);

  // Calls `on_event` with each event's object, on the caller's thread, until [DONE]. When
  // `interrupted` turns true the call is dropped: the server then cancels the request.
  void stream(std::string_view path, const boost::json::object& body,
              const std::function<void(const boost::json::object&)>& on_event,
              const std::function<bool()>& interrupted);

  bool is_up();  // something answers on /health

 private:
  struct Answer {
    int status = 0;
    std::string body;
  };
  Answer call(std::string method, std::string_view path, std::string body);

  ServerAddress address_;
  http::Loop loop_;
};

}  // namespace bodega::cli
