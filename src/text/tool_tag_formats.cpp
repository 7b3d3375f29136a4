#include <array>
#include <utility>

#include "text/tool_block.h"

// Formats whose arguments are bare text between tags.
namespace bodega::text {
namespace {

struct Tags {
  std::array<std::string_view, 2> openings;  // of the block; and of a call that stands alone, or ""
  std::string_view call_begin;               // before a name; "": the name follows the opening
  std::string_view call_name_end;
  std::string_view name_begin;  // of an argument
  std::string_view name_end;
  std::string_view value_begin;  // "": at once
  std::string_view value_end;
  std::string_view call_end;  // "": the block's end
  std::string_view closing;
  bool broken_lines;  // a value stands on lines of its own
};

constexpr Tags kQwen3Coder = {{"<tool_call>", "<function="},
                              "<function=",
                              ">",
                              "<parameter=",
                              ">",
                              "",
                              "</parameter>",
                              "</function>",
                              "</tool_call>",
                              true};
constexpr Tags kMiniMaxM2 = {{"<minimax:tool_call>", ""},
                             "<invoke name=\"",
                             "\">",
                             "<parameter name=\"",
                             "\">",
                             "",
                             "</parameter>",
                             "</invoke>",
                             "</minimax:tool_call>",
                             false};
constexpr Tags kGlm4 = {
    {"<tool_call>", ""}, "",   "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "",
    "</tool_call>",      false};

std::string_view without_line_breaks(std::string_view value) {
  if (value.starts_with("\r\n")) {
    value.remove_prefix(2);
  } else if (value.starts_with('\n')) {
    value.remove_prefix(1);
  }
  if (value.ends_with('\n')) value.remove_suffix(1);
  if (value.ends_with('\r')) value.remove_suffix(1);
  return value;
}

class TagBlock final : public BlockFormat {
 public:
  TagBlock(const Tags& tags, std::shared_ptr<const ToolDeclarations> declared)
      : tags_(tags), declared_(std::move(declared)) {}

  std::span<const std::string_view> openings() const override {
    return {tags_.openings.data(), tags_.openings[1].empty() ? 1U : 2U};
  }

  Block read(std::string_view text, bool last) const override {
    BlockReader reader(text);
    std::vector<ToolCall> calls;
    const bool block = text.starts_with(tags_.openings[0]);
    if (block) reader.literal(tags_.openings[0]);
    std::size_t whole = 0;
    do {
      reader.blanks();
      read_call(reader, calls);
      if (reader.good()) whole = reader.at();
      reader.blanks();
    } while (block && !tags_.call_begin.empty() &&
             !reader.either(tags_.closing, tags_.call_begin) && reader.good());
    const bool only_closing = whole > 0 && tags_.closing.starts_with(reader.rest());
    if (last && only_closing && reader.found() == Found::kMore && !tags_.call_begin.empty()) {
      return {Found::kDone, text.size(), std::move(calls)};
    }
    if (!reader.good()) return {reader.found(), 0, {}};
    const bool closes = block && !tags_.call_begin.empty();
    return {Found::kDone, closes ? reader.at() : whole, std::move(calls)};
  }

 private:
  void read_call(BlockReader& reader, std::vector<ToolCall>& calls) const {
    ToolCall call;
    call.name = read_name(reader);
    if (reader.good() && call.name.empty()) reader.fail(Found::kNo);
    BareArguments arguments(find_tool(*declared_, call.name));
    const std::string_view end = tags_.call_end.empty() ? tags_.closing : tags_.call_end;
    reader.blanks();
    while (reader.good() && !reader.either(end, tags_.name_begin) && reader.good()) {
      reader.literal(tags_.name_begin);
      const std::string_view name = reader.until(tags_.name_end, line_char);
      if (!tags_.value_begin.empty()) {
        reader.blanks();
        reader.literal(tags_.value_begin);
      }
      const std::string_view value = read_value(reader, end);
      if (reader.good()) arguments.add(name, value);
      reader.blanks();
    }
    call.arguments = arguments.text();
    if (reader.good()) calls.push_back(std::move(call));
  }

  std::string_view read_name(BlockReader& reader) const {
    if (!tags_.call_begin.empty()) {
      reader.literal(tags_.call_begin);
      return reader.until(tags_.call_name_end, name_char);
    }
    std::size_t size = 0;
    const std::string_view rest = reader.rest();
    while (size < rest.size() && name_char(rest[size])) ++size;
    if (size == rest.size()) reader.fail(size > 256 ? Found::kNo : Found::kMore);
    reader.literal(rest.substr(0, size));
    return rest.substr(0, size);
  }

  // The value's text may hold the tag that ends it: only one after which the call goes on or ends
  // is taken for it.
  std::string_view read_value(BlockReader& reader, std::string_view end) const {
    if (!reader.good()) return {};
    const std::string_view rest = reader.rest();
    for (std::size_t at = rest.find(tags_.value_end); at != std::string_view::npos;
         at = rest.find(tags_.value_end, at + 1)) {
      BlockReader after(rest.substr(at + tags_.value_end.size()));
      after.blanks();
      const bool ends = after.either(end, tags_.name_begin);
      if (!ends && after.found() == Found::kNo) continue;
      if (after.found() == Found::kMore) break;
      reader.literal(rest.substr(0, at + tags_.value_end.size()));
      const std::string_view value = rest.substr(0, at);
      return tags_.broken_lines ? without_line_breaks(value) : value;
    }
    reader.fail(Found::kMore);
    return {};
  }

  const Tags& tags_;
  std::shared_ptr<const ToolDeclarations> declared_;
};

}  // namespace

std::unique_ptr<BlockFormat> make_tag_block(ToolFormat format,
                                            std::shared_ptr<const ToolDeclarations> declared) {
  const Tags& tags = format == ToolFormat::kGlm4        ? kGlm4
                     : format == ToolFormat::kMiniMaxM2 ? kMiniMaxM2
                                                        : kQwen3Coder;
  return std::make_unique<TagBlock>(tags, std::move(declared));
}

}  // namespace bodega::text
