#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "text/tokenizer.h"

// A tokenizer from a model file: as tokenizer.json, or as GGUF metadata where the first line says
// "gguf <model> <pre> <flags>", each further line is a token with its type in front, and lines
// after an empty one are merges. What loads must keep its promises on any text.
namespace {

using bodega::text::StreamDecoder;
using bodega::text::TokenId;
using bodega::text::Tokenizer;

constexpr std::string_view kText =
    "Hello  w\u00f6rld <s>\u4f60\U0001F989\ufdd0</s> 123\r\n\t it's <|im_end|>";

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

bodega::core::GgufVocabulary gguf_of(std::string_view data) {
  const std::vector<std::string> lines = split(data, '\n');
  const std::vector<std::string> head = split(lines[0], ' ');
  bodega::core::GgufVocabulary file;
  file.model = head.size() > 1 ? head[1] : "";
  file.pre = head.size() > 2 ? head[2] : "";
  const unsigned flags = head.size() > 3 ? head[3].size() : 0;
  file.add_bos = (flags & 1U) != 0;
  file.add_space_prefix = (flags & 2U) != 0;
  file.unknown = static_cast<std::int32_t>(flags) - 4;
  file.bos = 0;
  bool merging = false;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) {
      merging = true;
    } else if (merging) {
      file.merges.push_back(lines[i]);
    } else {
      file.types.push_back(lines[i][0] - '0');
      file.scores.push_back(-static_cast<float>(i));
      file.tokens.push_back(lines[i].substr(1));
    }
  }
  return file;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void use(const std::shared_ptr<const Tokenizer>& tokenizer) {
  for (const bool parse_special : {false, true}) {
    const std::vector<TokenId> ids = tokenizer->encode(kText, true, parse_special);
    StreamDecoder stream(tokenizer, false);
    std::string text;
    for (const TokenId id : ids) text += stream.push(id);
    require(text + stream.flush() == tokenizer->decode(ids, false));
  }
  const std::string guarded = tokenizer->guard(kText);
  require(Tokenizer::unguard(guarded) == kText);
  require(tokenizer->encode_rendered(guarded) == tokenizer->encode(kText, false, false));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    use(file.starts_with("gguf ") ? Tokenizer::from_gguf(gguf_of(file))
                                  : Tokenizer::from_json(file));
  } catch (const bodega::Error& error) {
    require(error.kind() != bodega::ErrorKind::kInternal);
  }
  return 0;
}
