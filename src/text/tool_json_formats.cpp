#include <array>
#include <utility>

#include "text/tool_block.h"

// Formats whose arguments are JSON.
namespace bodega::text {
namespace {

Block done(const BlockReader& reader, std::vector<ToolCall> calls) {
  if (!reader.good()) return {reader.found(), 0, {}};
  return {Found::kDone, reader.at(), std::move(calls)};
}

// One object that is a call, or fails the reader.
void read_call(BlockReader& reader, std::vector<ToolCall>& calls) {
  if (reader.good() && !reader.rest().empty() && reader.rest()[0] != '{') reader.fail(Found::kNo);
  const std::string_view object = reader.json();
  if (!reader.good()) return;
  std::optional<ToolCall> call = call_of_json(object);
  if (call) {
    calls.push_back(std::move(*call));
  } else {
    reader.fail(Found::kNo);
  }
}

void read_arguments(BlockReader& reader, ToolCall call, std::vector<ToolCall>& calls) {
  if (reader.good() && !reader.rest().empty() && reader.rest()[0] != '{') reader.fail(Found::kNo);
  const std::string_view object = reader.json();
  if (!reader.good()) return;
  std::optional<std::string> arguments = as_json(object);
  if (!arguments || call.name.empty()) {
    reader.fail(Found::kNo);
    return;
  }
  call.arguments = std::move(*arguments);
  calls.push_back(std::move(call));
}

// <tool_call> {...} </tool_call>; some models put several objects into one block.
class JsonBlock final : public BlockFormat {
 public:
  JsonBlock(std::string_view opening, std::string_view closing)
      : openings_{opening}, closing_(closing) {}
  std::span<const std::string_view> openings() const override { return openings_; }

  Block read(std::string_view text, bool last) const override {
    BlockReader reader(text);
    std::vector<ToolCall> calls;
    reader.literal(openings_[0]);
    reader.blanks();
    read_call(reader, calls);
    reader.blanks();
    while (reader.good() && !reader.either(closing_, "{")) {
      // A model may end where only the closing tag is left to write.
      if (!reader.good()) break;
      read_call(reader, calls);
      reader.blanks();
    }
    if (last && reader.found() == Found::kMore && !calls.empty() &&
        closing_.starts_with(reader.rest())) {
      return {Found::kDone, text.size(), std::move(calls)};
    }
    return done(reader, std::move(calls));
  }

 private:
  std::array<std::string_view, 1> openings_;
  std::string_view closing_;
};

// Objects, or an array of them, as the whole answer. Only a declared name tells a call from an
// answer in JSON.
class JsonAnswer final : public BlockFormat {
 public:
  explicit JsonAnswer(std::shared_ptr<const ToolDeclarations> declared)
      : declared_(std::move(declared)) {}
  std::span<const std::string_view> openings() const override { return kOpenings; }
  bool only_first() const override { return true; }
  std::string_view separators() const override { return " \t\r\n;"; }

  Block read(std::string_view text, bool /*last*/) const override {
    BlockReader reader(text);
    if (text.starts_with(kOpenings[0])) {
      reader.literal(kOpenings[0]);
      reader.blanks();
    }
    const std::string_view rest = reader.rest();
    if (rest.empty()) return {Found::kMore, 0, {}};
    std::string_view first = rest;
    if (rest[0] == '[')
      first.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n", 1), rest.size()));
    if (first.empty()) return {Found::kMore, 0, {}};
    if (first[0] != '{' || !may_be_call(first)) return {Found::kNo, 0, {}};
    const std::string_view value = reader.json();
    if (!reader.good()) return {reader.found(), 0, {}};
    const std::optional<std::string> text_value = as_json(value);
    if (!text_value) return {Found::kNo, 0, {}};
    std::vector<ToolCall> calls;
    if (rest[0] == '{') {
      if (!add(*text_value, calls)) return {Found::kNo, 0, {}};
    } else {
      for (const std::string_view element : elements_of(*text_value)) {
        if (!add(element, calls)) return {Found::kNo, 0, {}};
      }
    }
    return done(reader, std::move(calls));
  }

 private:
  static constexpr std::array<std::string_view, 3> kOpenings{"<|python_tag|>", "{", "["};

  bool add(std::string_view object, std::vector<ToolCall>& calls) const {
    std::optional<ToolCall> call;
    if (object.starts_with('{')) call = call_of_json(object);
    if (!call || find_tool(*declared_, call->name) == nullptr) return false;
    calls.push_back(std::move(*call));
    return true;
  }

  std::shared_ptr<const ToolDeclarations> declared_;
};

// [TOOL_CALLS][{...}, ...], or [TOOL_CALLS]name[CALL_ID]id[ARGS]{...} once a call.
class MistralBlock final : public BlockFormat {
 public:
  std::span<const std::string_view> openings() const override { return kOpenings; }

  Block read(std::string_view text, bool /*last*/) const override {
    BlockReader reader(text);
    std::vector<ToolCall> calls;
    reader.literal(kOpenings[0]);
    reader.blanks();
    if (!reader.rest().empty() && reader.rest()[0] == '[') {
      read_array(reader, calls);
    } else {
      read_named(reader, calls);
    }
    return done(reader, std::move(calls));
  }

 private:
  static constexpr std::array<std::string_view, 1> kOpenings{"[TOOL_CALLS]"};

  static void read_array(BlockReader& reader, std::vector<ToolCall>& calls) {
    const std::string_view array = reader.json();
    if (!reader.good()) return;
    const std::optional<std::string> text = as_json(array);
    if (!text) {
      reader.fail(Found::kNo);
      return;
    }
    for (const std::string_view element : elements_of(*text)) {
      std::optional<ToolCall> call;
      if (element.starts_with('{')) call = call_of_json(element);
      if (call) {
        calls.push_back(std::move(*call));
      } else {
        reader.fail(Found::kNo);
      }
    }
    if (calls.empty()) reader.fail(Found::kNo);
  }

  static void read_named(BlockReader& reader, std::vector<ToolCall>& calls) {
    std::size_t size = 0;
    const std::string_view rest = reader.rest();
    while (size < rest.size() && name_char(rest[size])) ++size;
    ToolCall call;
    call.name = rest.substr(0, size);
    if (size == rest.size()) reader.fail(size > 256 ? Found::kNo : Found::kMore);
    reader.literal(call.name);
    reader.blanks();
    if (reader.either("[CALL_ID]", next_of(reader))) {
      call.id = reader.until("[ARGS]", name_char);
    } else if (reader.good() && reader.rest().starts_with('[')) {
      reader.literal("[ARGS]");
    }
    reader.blanks();
    read_arguments(reader, std::move(call), calls);
  }

  // What may come instead of a call id.
  static std::string_view next_of(const BlockReader& reader) {
    return reader.rest().starts_with('{') ? "{" : "[ARGS]";
  }
};

// The marks of a section of calls, or of one call alone.
struct SectionMarks {
  std::string_view section;
  std::string_view call;
  std::string_view end;
};

// Calls in a section, or a lone one without it; `read_one` reads a call with its own marks. A last
// text that stops inside the end mark is whole.
Block read_section(std::string_view text, bool last, const SectionMarks& marks,
                   void (*read_one)(BlockReader&, std::vector<ToolCall>&)) {
  BlockReader reader(text);
  std::vector<ToolCall> calls;
  const bool section = reader.either(marks.section, marks.call);
  std::size_t whole = 0;
  do {
    reader.blanks();
    read_one(reader, calls);
    if (reader.good()) whole = reader.at();
    reader.blanks();
  } while (section && reader.good() && !reader.either(marks.end, marks.call) && reader.good());
  if (last && section && whole > 0 && reader.found() == Found::kMore &&
      marks.end.starts_with(reader.rest())) {
    return {Found::kDone, text.size(), std::move(calls)};
  }
  if (!section && reader.good()) return {Found::kDone, whole, std::move(calls)};
  return done(reader, std::move(calls));
}

class DeepSeekBlock final : public BlockFormat {
 public:
  std::span<const std::string_view> openings() const override { return kOpenings; }

  Block read(std::string_view text, bool last) const override {
    return read_section(text, last, {kOpenings[0], kOpenings[1], kEnd}, read_one);
  }

 private:
  static constexpr std::array<std::string_view, 2> kOpenings{"<｜tool▁calls▁begin｜>",
                                                             "<｜tool▁call▁begin｜>"};
  static constexpr std::string_view kSeparator = "<｜tool▁sep｜>";
  static constexpr std::string_view kCallEnd = "<｜tool▁call▁end｜>";
  static constexpr std::string_view kEnd = "<｜tool▁calls▁end｜>";
  static constexpr std::string_view kFence = "```json";

  // begin function sep name, a line break, the arguments in a fence; or begin name sep arguments.
  static void read_one(BlockReader& reader, std::vector<ToolCall>& calls) {
    ToolCall call;
    reader.literal(kOpenings[1]);
    call.name = reader.until(kSeparator, name_char);
    reader.blanks();
    if (reader.good() && reader.rest().empty()) reader.fail(Found::kMore);
    const bool fenced = reader.good() && reader.rest()[0] != '{';
    if (fenced) {
      call.name = reader.until("\n", name_char);
      reader.blanks();
      reader.literal(kFence);
      reader.blanks();
    }
    read_arguments(reader, std::move(call), calls);
    reader.blanks();
    if (fenced) reader.literal("```");
    reader.blanks();
    reader.literal(kCallEnd);
  }
};

class KimiBlock final : public BlockFormat {
 public:
  std::span<const std::string_view> openings() const override { return kOpenings; }

  Block read(std::string_view text, bool last) const override {
    return read_section(text, last, {kOpenings[0], kOpenings[1], kEnd}, read_one);
  }

 private:
  static constexpr std::array<std::string_view, 2> kOpenings{"<|tool_calls_section_begin|>",
                                                             "<|tool_call_begin|>"};
  static constexpr std::string_view kEnd = "<|tool_calls_section_end|>";

  // The id says the name: functions.get_time:0.
  static void read_one(BlockReader& reader, std::vector<ToolCall>& calls) {
    ToolCall call;
    reader.literal(kOpenings[1]);
    reader.blanks();
    call.id = reader.until("<|tool_call_argument_begin|>",
                           [](char c) { return name_char(c) || c == ' '; });
    while (!call.id.empty() && call.id.back() == ' ') call.id.pop_back();
    call.name = call.id.substr(0, call.id.rfind(':'));
    if (call.name.starts_with("functions.")) call.name.erase(0, 10);
    reader.blanks();
    read_arguments(reader, std::move(call), calls);
    reader.blanks();
    reader.literal("<|tool_call_end|>");
  }
};

}  // namespace

std::unique_ptr<BlockFormat> make_json_block(std::string_view opening, std::string_view closing) {
  return std::make_unique<JsonBlock>(opening, closing);
}
std::unique_ptr<BlockFormat> make_json_answer(std::shared_ptr<const ToolDeclarations> declared) {
  return std::make_unique<JsonAnswer>(std::move(declared));
}
std::unique_ptr<BlockFormat> make_mistral_block() { return std::make_unique<MistralBlock>(); }
std::unique_ptr<BlockFormat> make_deepseek_block() { return std::make_unique<DeepSeekBlock>(); }
std::unique_ptr<BlockFormat> make_kimi_block() { return std::make_unique<KimiBlock>(); }

}  // namespace bodega::text
