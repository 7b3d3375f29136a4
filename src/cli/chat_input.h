#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

namespace bodega::cli {

// Reads what a person types into a chat: one line a message; between two lines that hold """ all
// lines are one message; a line that ends in a backslash goes on in the next.
class ChatInput {
 public:
  // Prompts are shown where `out` is set.
  ChatInput(std::istream& in, std::ostream* out) : in_(in), out_(out) {}

  // The next message or command without the blanks around it; nothing at the end of the input.
  std::optional<std::string> next();

 private:
  std::optional<std::string> line(const char* prompt);
  std::string block(std::string first);

  std::istream& in_;
  std::ostream* out_;
};

std::string trim(const std::string& text);

}  // namespace bodega::cli
