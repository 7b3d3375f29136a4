#include <array>
#include <utility>

#include "text/tool_block.h"

// [f(a=1, b="x"), g()]: calls as a list in Python.
namespace bodega::text {
namespace {

constexpr int kDepth = 64;

bool word_char(char c) { return name_char(c) && c != ':' && c != '/' && c != '-'; }

// Reads Python literals and writes them as JSON.
class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : reader_(text) {}

  BlockReader& reader() { return reader_; }
  bool good() const { return reader_.good(); }

  // The next character after blanks; 0 where the text ends first.
  char peek() {
    reader_.blanks();
    if (good() && reader_.rest().empty()) reader_.fail(Found::kMore);
    return good() ? reader_.rest()[0] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    step();
    return true;
  }
  void expect(char c) {
    if (!take(c)) reader_.fail(Found::kNo);
  }

  // A name of letters, digits, '_' and '.'; what follows it has to be there to know its end.
  std::string word() {
    peek();
    const std::string_view rest = good() ? reader_.rest() : std::string_view();
    std::size_t size = 0;
    while (size < rest.size() && word_char(rest[size])) ++size;
    if (good() && (size == 0 || size > 256)) reader_.fail(Found::kNo);
    if (good() && size == rest.size()) reader_.fail(Found::kMore);
    for (std::size_t i = 0; i < size; ++i) step();
    return std::string(rest.substr(0, size));
  }

  std::string value(int depth = 0) {
    const char c = peek();
    if (!good()) return {};
    if (depth == kDepth) reader_.fail(Found::kNo);
    if (c == '"' || c == '\'') return quoted(string());
    if (c == '[') return sequence('[', ']', depth);
    if (c == '(') return sequence('(', ')', depth);
    if (c == '{') return dictionary(depth);
    return scalar();
  }

 private:
  void step() { reader_.literal(reader_.rest().substr(0, 1)); }

  std::string string() {
    const char end = reader_.rest()[0];
    step();
    std::string text;
    while (good()) {
      const std::string_view rest = reader_.rest();
      if (rest.empty() || (rest[0] == '\\' && rest.size() < 2)) {
        reader_.fail(Found::kMore);
      } else if (rest[0] == end) {
        step();
        return text;
      } else if (rest[0] == '\\') {
        text += escape(rest);
      } else {
        text += rest[0];
        step();
      }
    }
    return text;
  }

  // Takes a backslash and what belongs to it. Unknown escapes stand for themselves, as in Python.
  std::string escape(std::string_view rest) {
    const char c = rest[1];
    if (c == 'u') return unicode_escape(rest);
    constexpr std::string_view kFrom = "ntr\\'\"";
    constexpr std::string_view kTo = "\n\t\r\\'\"";
    std::string text = std::string(rest.substr(0, 2));
    if (const std::size_t at = kFrom.find(c); at != std::string_view::npos) text = kTo[at];
    if (c == '\n') text.clear();
    step();
    step();
    return text;
  }

  // \uXXXX as JSON reads it: one, or a pair of surrogates. The reader asks for all that may belong
  // to it, so that a cut in between changes nothing.
  std::string unicode_escape(std::string_view rest) {
    const bool high = rest.size() >= 4 && (rest[2] == 'd' || rest[2] == 'D') &&
                      std::string_view("89abAB").find(rest[3]) != std::string_view::npos;
    const std::size_t size = high ? 12 : 6;
    if (rest.size() < size) {
      reader_.fail(Found::kMore);
      return {};
    }
    std::string literal = "\"";
    literal.append(rest.substr(0, size)).append("\"");
    const std::optional<std::string> text = json_string(literal);
    if (!text) reader_.fail(Found::kNo);
    for (std::size_t i = 0; i < size; ++i) step();
    return text.value_or("");
  }

  std::string sequence(char open, char close, int depth) {
    expect(open);
    std::string out = "[";
    while (good() && !take(close) && good()) {
      if (out.size() > 1) out += ", ";
      out += value(depth + 1);
      if (peek() != close) expect(',');
    }
    return out += "]";
  }

  std::string dictionary(int depth) {
    expect('{');
    BareArguments members(nullptr);
    while (good() && !take('}') && good()) {
      const char c = peek();
      if (c != '"' && c != '\'') reader_.fail(Found::kNo);
      if (!good()) break;
      const std::string key = string();
      expect(':');
      members.add_json(key, value(depth + 1));
      if (peek() != '}') expect(',');
    }
    return members.text();
  }

  std::string scalar() {
    const std::string_view rest = reader_.rest();
    std::size_t size = 0;
    while (size < rest.size() && (word_char(rest[size]) || rest[size] == '-' || rest[size] == '+'))
      ++size;
    if (size == rest.size()) reader_.fail(Found::kMore);
    std::string text(rest.substr(0, size));
    for (std::size_t i = 0; i < size && good(); ++i) step();
    if (text == "True" || text == "true") return "true";
    if (text == "False" || text == "false") return "false";
    if (text == "None" || text == "null") return "null";
    const bool number = !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
    if (good() && (!number || !as_json(text))) reader_.fail(Found::kNo);
    return text;
  }

  BlockReader reader_;
};

class PythonAnswer final : public BlockFormat {
 public:
  explicit PythonAnswer(std::shared_ptr<const ToolDeclarations> declared)
      : declared_(std::move(declared)) {}
  std::span<const std::string_view> openings() const override { return kOpenings; }
  bool only_first() const override { return true; }

  Block read(std::string_view text, bool last) const override {
    PythonReader python(text);
    const bool marked = text.starts_with(kOpenings[0]);
    if (marked) python.reader().literal(kOpenings[0]);
    std::vector<ToolCall> calls;
    python.expect('[');
    while (python.good() && (calls.empty() || !python.take(']')) && python.good()) {
      if (!calls.empty()) python.expect(',');
      read_call(python, calls);
    }
    const bool whole = python.good();
    if (marked && whole) {
      python.reader().blanks();
      python.reader().literal(kClosing);
      if (last && python.reader().found() == Found::kMore)
        return {Found::kDone, text.size(), calls};
    }
    if (!python.good()) return {python.reader().found(), 0, {}};
    return {Found::kDone, python.reader().at(), std::move(calls)};
  }

 private:
  static constexpr std::array<std::string_view, 2> kOpenings{"<|python_start|>", "["};
  static constexpr std::string_view kClosing = "<|python_end|>";

  void read_call(PythonReader& python, std::vector<ToolCall>& calls) const {
    ToolCall call;
    call.name = python.word();
    python.expect('(');
    if (python.good() && find_tool(*declared_, call.name) == nullptr)
      python.reader().fail(Found::kNo);
    BareArguments arguments(nullptr);
    while (python.good() && !python.take(')') && python.good()) {
      const std::string name = python.word();
      python.expect('=');
      arguments.add_json(name, python.value());
      if (python.peek() != ')') python.expect(',');
    }
    call.arguments = arguments.text();
    calls.push_back(std::move(call));
  }

  std::shared_ptr<const ToolDeclarations> declared_;
};

}  // namespace

std::unique_ptr<BlockFormat> make_python_answer(std::shared_ptr<const ToolDeclarations> declared) {
  return std::make_unique<PythonAnswer>(std::move(declared));
}

}  // namespace bodega::text
