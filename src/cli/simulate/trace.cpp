#include "cli/simulate/trace.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <string>

#include "base/errors.h"

namespace bodega::cli {
namespace {

namespace json = boost::json;

constexpr std::int64_t kMostTokens = 10'000'000;

class TraceReader {
 public:
  TraceReader(std::shared_ptr<std::istream> lines, int block_tokens)
      : lines_(std::move(lines)), block_tokens_(block_tokens) {}

  std::optional<SimRequest> next() {
    std::string line;
    do {
      ++number_;
      if (!std::getline(*lines_, line)) return std::nullopt;
    } while (line.find_first_not_of(" \t\r") == std::string::npos);
    json::error_code error;
    const json::value value = json::parse(line, error);
    if (error || !value.is_object()) fail("is not a JSON object");
    return read(value.as_object());
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kConfig,
                "Line " + std::to_string(number_) + " of the trace " + what + ".");
  }
  std::int64_t integer(const json::value& value, const char* name, std::int64_t least) const {
    if (!value.is_int64() || value.as_int64() < least || value.as_int64() > kMostTokens) {
      fail(std::string("has no usable \"") + name + '"');
    }
    return value.as_int64();
  }
  const json::value& member(const json::object& line, const char* name) const {
    const json::value* value = line.if_contains(name);
    if (value == nullptr) fail(std::string("lacks \"") + name + '"');
    return *value;
  }

  SimRequest read(const json::object& line) {
    SimRequest request;
    const json::value& arrival = member(line, "arrival");
    request.arrival_s = arrival.is_number() ? arrival.to_number<double>() : -1;
    if (!(request.arrival_s >= last_s_) || !std::isfinite(request.arrival_s)) {
      fail("has an \"arrival\" before the line above it, or none");
    }
    last_s_ = request.arrival_s;
    request.output_tokens = static_cast<int>(integer(member(line, "output"), "output", 1));
    const json::array* blocks = member(line, "blocks").if_array();
    if (blocks == nullptr || blocks->empty()) fail("has no \"blocks\"");
    for (const json::value& id : *blocks) {
      if (!id.is_int64()) fail("has a block that is no whole number");
      request.prompt.push_back({static_cast<std::uint64_t>(id.as_int64()), block_tokens_});
    }
    if (const json::value* tokens = line.if_contains("prompt")) {
      cut(request, integer(*tokens, "prompt", 1));
    }
    // The answer is this request's own.
    request.prompt.push_back({(static_cast<std::uint64_t>(number_) << 32) ^ 0xA5A5A5A5, 1});
    return request;
  }
  void cut(SimRequest& request, std::int64_t tokens) const {
    const std::int64_t spare = request.prompt_tokens() - tokens;
    if (spare < 0 || spare >= block_tokens_) fail("has a \"prompt\" that its blocks do not fit");
    request.prompt.back().tokens -= static_cast<int>(spare);
  }

  std::shared_ptr<std::istream> lines_;
  int block_tokens_;
  int number_ = 0;
  double last_s_ = 0;
};

}  // namespace

SimSource read_trace(std::shared_ptr<std::istream> lines, int block_tokens) {
  const auto reader = std::make_shared<TraceReader>(std::move(lines), block_tokens);
  return [reader] { return reader->next(); };
}

}  // namespace bodega::cli
