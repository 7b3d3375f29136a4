#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace bodega::http {

inline constexpr std::string_view kSseKeepAlive = ": keep-alive\n\n";
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
inline constexpr std::string_view kSseMediaType = "text/event-stream";

// "data: ...\n\n"; a line break inside the data begins another data line. `name` gives an event
// line.
std::string sse_event(std::string_view data, std::string_view name = {});

// Cuts a relayed stream after its last whole event, so that an error event can follow at any time.
class SseCutter {
 public:
  // The whole events that these bytes complete; the rest is kept for the next call.
  std::string take(std::string_view bytes);
  // What is left when the stream has properly ended.
  std::string rest() { return std::move(tail_); }

 private:
  std::string tail_;
};

}  // namespace bodega::http
