#include "http/head_writer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace bodega::http {
namespace {

constexpr std::array<std::string_view, 5> kFramingHeaders = {
    "connection", "keep-alive", "transfer-encoding", "content-length", "date"};

struct Reason {
  int status;
  const char* phrase;
};

constexpr std::array<Reason, 22> kReasons = {{{100, "Continue"},
                                              {200, "OK"},
                                              {202, "Accepted"},
                                              {204, "No Content"},
                                              {400, "Bad Request"},
                                              {401, "Unauthorized"},
                                              {403, "Forbidden"},
                                              {404, "Not Found"},
                                              {405, "Method Not Allowed"},
                                              {408, "Request Timeout"},
                                              {409, "Conflict"},
                                              {411, "Length Required"},
                                              {413, "Content Too Large"},
                                              {415, "Unsupported Media Type"},
                                              {417, "Expectation Failed"},
                                              {429, "Too Many Requests"},
                                              {431, "Request Header Fields Too Large"},
                                              {500, "Internal Server Error"},
                                              {502, "Bad Gateway"},
                                              {503, "Service Unavailable"},
                                              {504, "Gateway Timeout"},
                                              {505, "HTTP Version Not Supported"}}};

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  for (const char c : value) {
    const bool control = (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
    out += control ? ' ' : c;
  }
  out += "\r\n";
}

void append_connection(std::string& out, const Framing& framing) {
  if (!framing.keep_alive) {
    append_header(out, "connection", "close");
    return;
  }
  if (framing.version == 10) append_header(out, "connection", "keep-alive");
  append_header(out, "keep-alive", "timeout=" + std::to_string(framing.keep_alive_s));
}

}  // namespace

const char* reason_phrase(int status) {
  const auto* const found = std::find_if(kReasons.begin(), kReasons.end(),
                                         [&](const Reason& row) { return row.status == status; });
  return found == kReasons.end() ? "Unknown" : found->phrase;
}

bool status_has_body(int status) { return status / 100 != 1 && status != 204 && status != 304; }

std::string http_date() {
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays.at(static_cast<std::size_t>(utc.tm_wday)), utc.tm_mday,
                kMonths.at(static_cast<std::size_t>(utc.tm_mon)), utc.tm_year + 1900, utc.tm_hour,
                utc.tm_min, utc.tm_sec);
  return text.data();
}

std::string write_head(int status, const Headers& headers, const Framing& framing) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " " + reason_phrase(status) + "\r\n";
  append_header(out, "date", http_date());
  for (const auto& [name, value] : headers) {
    if (std::count(kFramingHeaders.begin(), kFramingHeaders.end(), name) != 0) continue;
    append_header(out, name, value);
  }
  append_connection(out, framing);
  if (framing.chunked) {
    append_header(out, "transfer-encoding", "chunked");
  } else if (framing.content_length) {
    append_header(out, "content-length", std::to_string(*framing.content_length));
  }
  out += "\r\n";
  return out;
}

std::string write_chunk(const std::string& bytes) {
  std::array<char, 20> size{};
  const int digits = std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  std::string out;
  out.reserve(bytes.size() + static_cast<std::size_t>(digits) + 2);
  out.append(size.data(), static_cast<std::size_t>(digits));
  out += bytes;
  out += "\r\n";
  return out;
}

}  // namespace bodega::http
