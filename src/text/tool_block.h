#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tool_parser.h"
#include "text/tool_values.h"

namespace bodega::text {

// Private to this folder: formats whose calls stand in blocks of markup.

// What begins at an opening. The verdict on a text may change only from kMore to another one as the
// text grows: then it does not matter how the text is cut.
struct Block {
  Found found = Found::kNo;
  std::size_t size = 0;
  std::vector<ToolCall> calls;
};

class BlockFormat {
 public:
  virtual ~BlockFormat() = default;
  virtual std::span<const std::string_view> openings() const = 0;
  // `text` begins with an opening. `last`: no more will come.
  virtual Block read(std::string_view text, bool last) const = 0;
  // Calls may stand only before all other text: the opening is nothing special elsewhere.
  virtual bool only_first() const { return false; }
  // What may stand between calls beside blanks.
  virtual std::string_view separators() const { return " \t\r\n"; }
};

std::unique_ptr<BlockFormat> make_json_block(std::string_view opening, std::string_view closing);
std::unique_ptr<BlockFormat> make_json_answer(std::shared_ptr<const ToolDeclarations> declared);
std::unique_ptr<BlockFormat> make_mistral_block();
std::unique_ptr<BlockFormat> make_deepseek_block();
std::unique_ptr<BlockFormat> make_kimi_block();
std::unique_ptr<BlockFormat> make_tag_block(ToolFormat format,
                                            std::shared_ptr<const ToolDeclarations> declared);
std::unique_ptr<BlockFormat> make_python_answer(std::shared_ptr<const ToolDeclarations> declared);

// Finds blocks in an answer that comes in pieces.
std::unique_ptr<ToolParser> make_block_parser(std::unique_ptr<BlockFormat> format);
std::unique_ptr<ToolParser> make_harmony_parser();

// Bytes at the end of `text` that begin `word`, but not all of it.
std::size_t open_end(std::string_view text, std::string_view word);

// Reads a block from left to right. Once something is missing or wrong, nothing more is read.
class BlockReader {
 public:
  explicit BlockReader(std::string_view text) : text_(text) {}

  Found found() const { return found_; }
  bool good() const { return found_ == Found::kDone; }
  std::size_t at() const { return at_; }
  std::string_view rest() const { return text_.substr(at_); }

  void blanks();
  bool literal(std::string_view word);  // has to come
  // True when one of the two comes, the first: it is taken.
  bool either(std::string_view word, std::string_view other);
  // Up to `end`, which is taken; of at most `most` bytes of characters that `fits` takes.
  std::string_view until(std::string_view end, bool (*fits)(char), std::size_t most = 256);
  std::string_view json();
  void fail(Found found) {
    if (good()) found_ = found;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  Found found_ = Found::kDone;
};

bool name_char(char c);  // of tool names
bool line_char(char c);  // anything but a line break

}  // namespace bodega::text
