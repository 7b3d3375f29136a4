#include "http/message.h"

#include <algorithm>

namespace bodega::http {

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string find_header(const Headers& headers, std::string_view lower_case_name) {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& item) { return item.first == lower_case_name; });
  return found == headers.end() ? std::string() : found->second;
}

std::string Request::header(std::string_view lower_case_name) const {
  return find_header(headers, lower_case_name);
}

std::string media_type(std::string_view content_type) {
  return to_lower(trim(content_type.substr(0, content_type.find(';'))));
}

}  // namespace bodega::http
