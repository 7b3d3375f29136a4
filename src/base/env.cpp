#include "base/env.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/bytes.h"
#include "base/errors.h"

namespace bodega {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& value, const std::string& expected) {
  throw Error(ErrorKind::kConfig,
              std::string(name) + " is \"" + value + "\"; it has to be " + expected + ".");
}

}  // namespace

std::optional<std::string> env_string(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::int64_t> env_int(const char* name, std::int64_t min, std::int64_t max) {
  const auto text = env_string(name);
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, problem] = std::from_chars(text->data(), end, value);
  if (problem != std::errc() || stop != end || value < min || value > max) {
    refuse(name, *text,
           "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return value;
}

std::optional<bool> env_flag(const char* name) {
  const auto text = env_string(name);
  if (!text) return std::nullopt;
  std::string word = *text;
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 4> kYes = {"1", "true", "yes", "on"};
  constexpr std::array<std::string_view, 4> kNo = {"0", "false", "no", "off"};
  if (std::find(kYes.begin(), kYes.end(), word) != kYes.end()) return true;
  if (std::find(kNo.begin(), kNo.end(), word) != kNo.end()) return false;
  refuse(name, *text, "1 or 0, true or false, yes or no, on or off");
}

std::optional<std::uint64_t> env_bytes(const char* name) {
  const auto text = env_string(name);
  if (!text) return std::nullopt;
  try {
    return parse_bytes(*text);
  } catch (const Error&) {
    refuse(name, *text, "a size like 512MiB or 4G");
  }
}

}  // namespace bodega
