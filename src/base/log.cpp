#include "base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <iterator>
#include <memory>
#include <mutex>

#include "base/env.h"
#include "base/errors.h"
#include "base/utf8.h"

namespace bodega {
namespace {

struct LevelName {
  LogLevel level;
  spdlog::level::level_enum spd;
  const char* name;
};

constexpr std::array<LevelName, 6> kLevels = {{{LogLevel::kTrace, spdlog::level::trace, "trace"},
                                               {LogLevel::kDebug, spdlog::level::debug, "debug"},
                                               {LogLevel::kInfo, spdlog::level::info, "info"},
                                               {LogLevel::kWarn, spdlog::level::warn, "warn"},
                                               {LogLevel::kError, spdlog::level::err, "error"},
                                               {LogLevel::kOff, spdlog::level::off, "off"}}};

const LevelName& entry(LogLevel level) { return kLevels[static_cast<std::size_t>(level)]; }

LogLevel level_from_environment(LogLevel fallback) {
  const auto word = env_string("BODEGA_LOG");
  if (!word) return fallback;
  for (const LevelName& known : kLevels) {
    if (*word == known.name) return known.level;
  }
  throw Error(ErrorKind::kConfig,
              "BODEGA_LOG is \"" + *word + "\"; use trace, debug, info, warn, error or off.");
}

// The one logger. Built on first use, so that a line before main's init_logging is not lost.
struct Sink {
  std::shared_ptr<spdlog::logger> logger;
  std::string component;
  bool json = false;

  Sink(std::string name, LogLevel level) : component(std::move(name)), json(isatty(2) == 0) {
    logger = std::make_shared<spdlog::logger>(component,
                                              std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern(json ? "%v" : "%H:%M:%S.%e %^%-5l%$ %v");
    logger->set_level(entry(level).spd);
    logger->flush_on(spdlog::level::trace);
  }
};

std::mutex sink_mutex;  // guards only the pointer; writers keep the sink alive by their copy
std::shared_ptr<const Sink> current_sink;

std::shared_ptr<const Sink> sink() {
  std::lock_guard lock(sink_mutex);
  if (!current_sink) current_sink = std::make_shared<Sink>("bodega", LogLevel::kWarn);
  return current_sink;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : replace_invalid_utf8(text)) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

struct JsonValue {
  std::string& out;
  void operator()(const std::string& text) const { append_json_string(out, text); }
  void operator()(std::int64_t value) const { out += fmt::to_string(value); }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(double value) const {
    out += std::isfinite(value) ? fmt::format("{}", value) : "null";
  }
};

// A value with blanks, quotes or control characters is quoted, so that a client's text can neither
// start a line of its own nor look like another field.
struct TextValue {
  std::string& out;
  void operator()(const std::string& text) const {
    const bool plain = !text.empty() && text.find_first_of(" \"=\\") == std::string::npos &&
                       std::none_of(text.begin(), text.end(), [](char c) {
                         return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
                       });
    if (plain) {
      out += text;
    } else {
      append_json_string(out, text);
    }
  }
  void operator()(std::int64_t value) const { out += fmt::to_string(value); }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(double value) const { out += fmt::format("{:.4g}", value); }
};

std::string utc_time() {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  std::tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     now.tv_nsec / 1000000);
}

}  // namespace

std::string format_log_text(std::string_view message, LogFields fields) {
  std::string line(message);
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    std::visit(TextValue{line}, field.value);
  }
  return line;
}

std::string format_log_json(LogLevel level, std::string_view component, std::string_view message,
                            LogFields fields) {
  std::string line = fmt::format(R"("level":"{}","component":)", entry(level).name);
  append_json_string(line, component);
  line += R"(,"message":)";
  append_json_string(line, message);
  for (const LogField& field : fields) {
    line += ',';
    append_json_string(line, field.key);
    line += ':';
    std::visit(JsonValue{line}, field.value);
  }
  return "{" + line + "}";
}

void init_logging(std::string_view component) {
  auto made =
      std::make_shared<Sink>(std::string(component), level_from_environment(LogLevel::kInfo));
  std::lock_guard lock(sink_mutex);
  current_sink = std::move(made);
}

bool log_enabled(LogLevel level) { return sink()->logger->should_log(entry(level).spd); }

void log(LogLevel level, std::string_view message, LogFields fields) noexcept {
  try {
    const auto target = sink();
    if (!target->logger->should_log(entry(level).spd)) return;
    std::string line;
    if (target->json) {
      line = format_log_json(level, target->component, message, fields);
      line.insert(1, "\"time\":\"" + utc_time() + "\",");
    } else {
      line = target->component + ": " + format_log_text(message, fields);
    }
    target->logger->log(entry(level).spd, "{}", line);
  } catch (...) {
    return;  // a full disk or closed pipe must not end a request
  }
}

}  // namespace bodega
