#include "http/sse.h"

#include <utility>

namespace bodega::http {

std::string sse_event(std::string_view data, std::string_view name) {
  std::string out;
  out.reserve(data.size() + name.size() + 24);
  if (!name.empty()) {
    out += "event: ";
    out += name;
    out += '\n';
  }
  while (true) {
    const auto end = data.find('\n');
    out += "data: ";
    out += data.substr(0, end);
    out += '\n';
    if (end == std::string_view::npos) break;
    data.remove_prefix(end + 1);
  }
  out += '\n';
  return out;
}

std::string SseCutter::take(std::string_view bytes) {
  std::string text = std::exchange(tail_, {});
  text += bytes;
  const auto end = text.rfind("\n\n");
  if (end == std::string::npos) {
    tail_ = std::move(text);
    return {};
  }
  tail_ = text.substr(end + 2);
  text.resize(end + 2);
  return text;
}

}  // namespace bodega::http
