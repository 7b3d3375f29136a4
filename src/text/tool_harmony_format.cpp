#include <array>
#include <utility>

#include "text/tool_block.h"

// The channels of gpt-oss (its format is called harmony): an answer is a list of messages
// <|channel|>NAME to=RECIPIENT<|message|>TEXT<|end|>, with <|start|>assistant between them.
namespace bodega::text {
namespace {

constexpr std::string_view kMessage = "<|message|>";
constexpr auto kTags = std::to_array<std::string_view>(
    {"<|start|>", "<|channel|>", "<|constrain|>", kMessage, "<|end|>", "<|call|>", "<|return|>"});

class HarmonyParser final : public ToolParser {
 public:
  ParsedText push(std::string_view text) override {
    held_ += text;
    ParsedText parsed;
    take(parsed, false);
    return parsed;
  }

  ParsedText finish() override {
    ParsedText parsed;
    take(parsed, true);
    end_message(parsed);
    return parsed;
  }

  bool thinking() const override { return in_text_ && place() == Place::kThought; }

 private:
  enum class Place { kThought, kContent, kCall };

  void take(ParsedText& parsed, bool last) {
    std::string_view text(held_);
    for (;;) {
      std::size_t at = std::string_view::npos;
      std::string_view found;
      std::size_t open = 0;
      for (const std::string_view tag : kTags) {
        const std::size_t place = text.find(tag);
        if (place < at) {
          at = place;
          found = tag;
        }
        if (!last) open = std::max(open, open_end(text, tag));
      }
      const std::size_t end = std::min(at, text.size() - open);
      say(text.substr(0, end), parsed);
      text.remove_prefix(end);
      if (end != at) break;
      text.remove_prefix(found.size());
      cross(found, parsed);
    }
    held_ = std::string(text);
  }

  void cross(std::string_view tag, ParsedText& parsed) {
    if (tag == kMessage) {
      in_text_ = true;
      tagged_ = true;
      return;
    }
    if (in_text_) end_message(parsed);
    in_text_ = false;
    tagged_ = true;
    if (tag == "<|channel|>" || tag == "<|constrain|>") header_ += ' ';
    if (tag == "<|start|>") header_.clear();
  }

  void say(std::string_view text, ParsedText& parsed) {
    if (!in_text_ && tagged_) {
      header_ += text;
      return;
    }
    switch (place()) {
      case Place::kThought:
        parsed.reasoning += text;
        break;
      case Place::kContent:
        parsed.content += text;
        break;
      case Place::kCall:
        arguments_ += text;
        break;
    }
  }

  void end_message(ParsedText& parsed) {
    if (in_text_ && place() == Place::kCall) {
      const std::optional<std::string> arguments = arguments_.empty() ? "{}" : as_json(arguments_);
      if (arguments && arguments->find_first_not_of(" \t\r\n") != std::string::npos &&
          (*arguments)[arguments->find_first_not_of(" \t\r\n")] == '{') {
        parsed.calls.push_back({"", recipient(), *arguments});
      } else {
        parsed.content += arguments_;
      }
    }
    arguments_.clear();
    header_.clear();
    in_text_ = false;
  }

  Place place() const {
    if (!recipient().empty()) return Place::kCall;
    return header_.find("analysis") != std::string::npos ? Place::kThought : Place::kContent;
  }

  // The function's name: "commentary to=functions.get_time json".
  std::string recipient() const {
    constexpr std::string_view kTo = "to=functions.";
    const std::size_t at = header_.find(kTo);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + kTo.size();
    return header_.substr(begin, header_.find_first_of(" \t\r\n", begin) - begin);
  }

  std::string held_;
  std::string header_;     // of the message at hand
  std::string arguments_;  // of the call at hand
  bool in_text_ = false;
  bool tagged_ = false;  // before the first tag all is content
};

}  // namespace

std::unique_ptr<ToolParser> make_harmony_parser() { return std::make_unique<HarmonyParser>(); }

}  // namespace bodega::text
