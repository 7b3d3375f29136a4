#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace bodega {

enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError, kOff };

// One `key=value` beside the message; a key of its own in the JSON form.
struct LogField {
  LogField(std::string_view key, std::string_view value) : key(key), value(std::string(value)) {}
  LogField(std::string_view key, const char* value) : key(key), value(std::string(value)) {}
  LogField(std::string_view key, bool value) : key(key), value(value) {}
  LogField(std::string_view key, double value) : key(key), value(value) {}
  template <typename Integer>
    requires std::is_integral_v<Integer>
  LogField(std::string_view key, Integer value)
      : key(key), value(static_cast<std::int64_t>(value)) {}

  std::string_view key;
  std::variant<std::string, std::int64_t, double, bool> value;
};

using LogFields = std::initializer_list<LogField>;

// Call once, early, from main; `component` ("front", "worker", ...) marks every line. Lines go to
// standard error: text on a terminal, JSON objects otherwise. The level comes from BODEGA_LOG
// (trace, debug, info, warn, error, off; default info). Throws Error(kConfig) for another word.
// Lines logged before the call, or in a program that never calls it, follow the same rules at
// "warn".
void init_logging(std::string_view component);

// True when a line of this level would be written: guards costly fields.
bool log_enabled(LogLevel level);

// Thread safe, one write a line. Never throws: a log that cannot be written is dropped.
void log(LogLevel level, std::string_view message, LogFields fields = {}) noexcept;

inline void log_debug(std::string_view message, LogFields fields = {}) {
  log(LogLevel::kDebug, message, fields);
}
inline void log_info(std::string_view message, LogFields fields = {}) {
  log(LogLevel::kInfo, message, fields);
}
inline void log_warn(std::string_view message, LogFields fields = {}) {
  log(LogLevel::kWarn, message, fields);
}
inline void log_error(std::string_view message, LogFields fields = {}) {
  log(LogLevel::kError, message, fields);
}

// The two forms of a line, for tests: no time, no newline.
std::string format_log_text(std::string_view message, LogFields fields);
std::string format_log_json(LogLevel level, std::string_view component, std::string_view message,
                            LogFields fields);

}  // namespace bodega
