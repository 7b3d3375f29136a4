#pragma once

#include <boost/json.hpp>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "cli/client.h"

namespace bodega::cli {

struct ChatOptions {
  std::string model;   // "" = the server's default
  std::string system;  // "" = none
  std::optional<double> temperature;
  std::optional<int> max_tokens;
  std::optional<std::uint64_t> seed;
};

// A conversation with a server: the messages so far and the figures of the last answer.
class ChatSession {
 public:
  ChatSession(Client& client, ChatOptions options);

  // Sends `text`, prints the answer to `out` as it comes. An interrupted answer stays in the
  // conversation as far as it went; one that failed leaves no trace. Throws Error.
  void ask(const std::string& text, std::ostream& out, const std::function<bool()>& interrupted);

  void reset();               // forgets all but the system text
  std::string stats() const;  // of the last answer, one line a figure

 private:
  boost::json::object body() const;
  void take_event(const boost::json::object& event, std::string& answer, std::ostream& out);

  Client& client_;
  const ChatOptions options_;
  boost::json::array messages_;
  boost::json::object usage_;
  boost::json::object timings_;
};

}  // namespace bodega::cli
