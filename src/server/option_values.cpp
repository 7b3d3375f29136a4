// Values of options as text: the one place that knows how a flag, an environment variable and a
// config.yaml scalar are spelt.
#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/bytes.h"
#include "base/errors.h"
#include "server/options.h"

namespace bodega::server {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view text, const std::string& allowed) {
  throw Error(ErrorKind::kConfig,
              std::string(name) + " must be " + allowed + ", not \"" + std::string(text) + "\".",
              std::string(name));
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

void parse_value(std::string_view, std::string_view text, std::string& out) { out = text; }

void parse_value(std::string_view name, std::string_view text, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse(name, text, "a whole number");
  }
}

void parse_value(std::string_view name, std::string_view text, bool& out) {
  const std::string word = lower(text);
  if (word == "true" || word == "1" || word == "yes" || word == "on") {
    out = true;
  } else if (word == "false" || word == "0" || word == "no" || word == "off") {
    out = false;
  } else {
    refuse(name, text, "true or false");
  }
}

void parse_value(std::string_view name, std::string_view text, std::uint64_t& out) {
  try {
    out = parse_bytes(text);
  } catch (const Error&) {
    refuse(name, text, "a size such as 1048576, 512MiB or 8GB");
  }
}

void parse_value(std::string_view, std::string_view text, StringList& out) {
  out.clear();
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const std::string_view item = trim(text.substr(0, comma));
    if (!item.empty()) out.emplace_back(item);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
}

void parse_value(std::string_view name, std::string_view text, StringMap& out) {
  StringList items;
  parse_value(name, text, items);
  out.clear();
  for (const std::string& item : items) {
    const auto equals = item.find('=');
    if (equals == std::string::npos || equals == 0) refuse(name, text, "a list like name=value");
    out[std::string(trim(item.substr(0, equals)))] =
        trim(std::string_view(item).substr(equals + 1));
  }
}

std::string value_text(const std::string& value) { return value; }
std::string value_text(int value) { return std::to_string(value); }
std::string value_text(bool value) { return value ? "true" : "false"; }
std::string value_text(std::uint64_t value) { return std::to_string(value); }

std::string value_text(const StringList& value) {
  std::string text;
  for (const std::string& item : value) text += (text.empty() ? "" : ",") + item;
  return text;
}

std::string value_text(const StringMap& value) {
  std::string text;
  for (const auto& [key, item] : value) {
    text += text.empty() ? "" : ",";
    text += key;
    text += '=';
    text += item;
  }
  return text;
}

void check_range(std::string_view name, std::int64_t value, std::int64_t min, std::int64_t max) {
  if (value >= min && value <= max) return;
  const std::string allowed = max == INT32_MAX ? "at least " + std::to_string(min)
                                               : std::to_string(min) + " to " + std::to_string(max);
  refuse(name, std::to_string(value), allowed);
}

void check_choice(std::string_view name, const std::string& value, const char* choices) {
  StringList allowed;
  parse_value(name, choices, allowed);
  if (allowed.empty() || std::count(allowed.begin(), allowed.end(), value) != 0) return;
  refuse(name, value, "one of: " + value_text(allowed));
}

}  // namespace bodega::server
