#include "text/tool_block.h"

#include <algorithm>
#include <utility>

namespace bodega::text {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// A block that has grown beyond this is looked at again only when it may have ended.
constexpr std::size_t kShortBlock = 512;
constexpr std::string_view kBlockEnds = ">}]";

class BlockParser final : public ToolParser {
 public:
  explicit BlockParser(std::unique_ptr<BlockFormat> format) : format_(std::move(format)) {}

  ParsedText push(std::string_view text) override {
    held_ += text;
    ParsedText parsed;
    const bool waits = inside_ && held_.size() > kShortBlock;
    if (waits && text.find_first_of(kBlockEnds) == std::string_view::npos) return parsed;
    take(parsed, false);
    return parsed;
  }

  ParsedText finish() override {
    ParsedText parsed;
    take(parsed, true);
    if (!called_ || spoken_since_call_) parsed.content += std::exchange(blanks_, {});
    return parsed;
  }

 private:
  void take(ParsedText& parsed, bool last) {
    inside_ = false;
    std::string_view text(held_);
    while (!text.empty() && !inside_) {
      const std::string_view opening = find_opening(text, last, parsed);
      if (opening.empty()) break;
      text = take_block(text, opening, last, parsed);
    }
    held_ = std::string(text);
  }

  // Says what stands before the next opening; returns it, "" where there is none yet.
  std::string_view find_opening(std::string_view& text, bool last, ParsedText& parsed) {
    if (format_->only_first()) return first_opening(text, last, parsed);
    std::size_t at = std::string_view::npos;
    std::string_view found;
    std::size_t open = 0;
    for (const std::string_view opening : format_->openings()) {
      const std::size_t place = text.find(opening);
      if (place < at ||
          (place == at && place != std::string_view::npos && opening.size() > found.size())) {
        at = place;
        found = opening;
      }
      if (!last) open = std::max(open, open_end(text, opening));
    }
    const std::size_t end = std::min(at, text.size() - open);
    say(text.substr(0, end), parsed);
    text.remove_prefix(end);
    return end == at ? found : std::string_view();
  }

  std::string_view first_opening(std::string_view& text, bool last, ParsedText& parsed) {
    const std::string_view between = called_ ? format_->separators() : kBlanks;
    const std::size_t begin = std::min(text.find_first_not_of(between), text.size());
    if (!spoken_) {
      if (begin == text.size() && !last) return {};
      bool open = false;
      for (const std::string_view opening : format_->openings()) {
        if (text.substr(begin).starts_with(opening)) {
          say(text.substr(0, called_ ? 0 : begin), parsed);
          text.remove_prefix(begin);
          return opening;
        }
        open = open || opening.starts_with(text.substr(begin));
      }
      if (open && !last) return {};
    }
    if (called_ && !spoken_ && begin == text.size()) {
      text = {};
      return {};
    }
    say(text, parsed);
    text = {};
    return {};
  }

  std::string_view take_block(std::string_view text, std::string_view opening, bool last,
                              ParsedText& parsed) {
    Block block;
    if (!is_quoted()) block = format_->read(text, last);
    if (block.found == Found::kMore && !last) {
      inside_ = true;
      return text;
    }
    if (block.found == Found::kDone) {
      for (ToolCall& call : block.calls) parsed.calls.push_back(std::move(call));
      called_ = true;
      spoken_since_call_ = false;
      blanks_.clear();
      return text.substr(block.size);
    }
    say(text.substr(0, opening.size()), parsed);
    return text.substr(opening.size());
  }

  // Blanks wait: beside a call they are part of its markup.
  void say(std::string_view text, ParsedText& parsed) {
    for (const char c : text) {
      if (kBlanks.find(c) != std::string_view::npos) {
        blanks_ += c;
      } else {
        const std::string blanks = std::exchange(blanks_, {});
        if (!called_ || spoken_) parsed.content += blanks;
        parsed.content += c;
        spoken_ = true;
        spoken_since_call_ = true;
      }
      count_backtick(c);
    }
  }

  void count_backtick(char c) {
    if (c == '`') {
      ++backticks_;
      return;
    }
    if (backticks_ >= 3) fenced_ = !fenced_;
    backticks_ = 0;
  }

  // Markup right after a backtick or inside a fence is shown to somebody, not meant.
  bool is_quoted() const { return fenced_ || backticks_ > 0; }

  std::unique_ptr<BlockFormat> format_;
  std::string held_;
  std::string blanks_;
  bool inside_ = false;  // held_ begins with an unfinished block
  bool called_ = false;
  bool spoken_ = false;
  bool spoken_since_call_ = true;
  bool fenced_ = false;
  int backticks_ = 0;
};

}  // namespace

std::size_t open_end(std::string_view text, std::string_view word) {
  for (std::size_t size = std::min(text.size(), word.size() - 1); size > 0; --size) {
    if (text.ends_with(word.substr(0, size))) return size;
  }
  return 0;
}

void BlockReader::blanks() {
  if (good()) at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
}

bool BlockReader::literal(std::string_view word) {
  if (!good()) return false;
  if (rest().starts_with(word)) {
    at_ += word.size();
    return true;
  }
  fail(word.starts_with(rest()) ? Found::kMore : Found::kNo);
  return false;
}

bool BlockReader::either(std::string_view word, std::string_view other) {
  if (!good()) return false;
  if (rest().starts_with(word)) {
    at_ += word.size();
    return true;
  }
  if (rest().starts_with(other)) return false;
  const bool open = word.starts_with(rest()) || other.starts_with(rest());
  fail(open ? Found::kMore : Found::kNo);
  return false;
}

std::string_view BlockReader::until(std::string_view end, bool (*fits)(char), std::size_t most) {
  if (!good()) return {};
  const std::size_t size = std::min(rest().find(end), rest().size());
  const std::string_view taken = rest().substr(0, size);
  const bool closed = size < rest().size();
  const std::string_view sure = taken.substr(0, closed ? size : size - open_end(taken, end));
  if (sure.size() > most || !std::all_of(sure.begin(), sure.end(), fits)) {
    fail(Found::kNo);
    return {};
  }
  if (!closed) {
    fail(Found::kMore);
    return {};
  }
  at_ += size + end.size();
  return taken;
}

std::string_view BlockReader::json() {
  if (!good()) return {};
  const Extent extent = json_extent(rest());
  if (extent.found != Found::kDone) {
    fail(extent.found);
    return {};
  }
  const std::string_view value = rest().substr(0, extent.size);
  at_ += extent.size;
  return value;
}

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':' || c == '/';
}

bool line_char(char c) { return c != '\n' && c != '\r'; }

std::unique_ptr<ToolParser> make_block_parser(std::unique_ptr<BlockFormat> format) {
  return std::make_unique<BlockParser>(std::move(format));
}

}  // namespace bodega::text
