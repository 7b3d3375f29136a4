#include "cli/chat_input.h"

#include <istream>
#include <ostream>

namespace bodega::cli {
namespace {

constexpr const char* kPrompt = ">>> ";
constexpr const char* kMore = "... ";
constexpr const char* kBlockMark = "\"\"\"";

}  // namespace

std::string trim(const std::string& text) {
  const char* blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::optional<std::string> ChatInput::line(const char* prompt) {
  if (out_ != nullptr) *out_ << prompt << std::flush;
  std::string text;
  if (!std::getline(in_, text)) return std::nullopt;
  return text;
}

// `first` is what follows the opening mark on its line.
std::string ChatInput::block(std::string first) {
  std::string text = std::move(first);
  while (text.find(kBlockMark) == std::string::npos) {
    const std::optional<std::string> more = line(kMore);
    if (!more) return text;
    if (!text.empty()) text += '\n';
    text += *more;
  }
  return text.substr(0, text.find(kBlockMark));
}

std::optional<std::string> ChatInput::next() {
  std::optional<std::string> text = line(kPrompt);
  if (!text) return std::nullopt;
  const std::string trimmed = trim(*text);
  if (trimmed.starts_with(kBlockMark)) return trim(block(trimmed.substr(3)));
  while (text->ends_with('\\')) {
    text->back() = '\n';
    const std::optional<std::string> more = line(kMore);
    if (!more) break;
    *text += *more;
  }
  return trim(*text);
}

}  // namespace bodega::cli
