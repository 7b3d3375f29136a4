#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/gguf_vocabulary.h"
#include "text/tokenizer.h"

namespace bodega::text {

// GPT-2's alphabet: the character that stands for a byte in a byte-level vocabulary, as UTF-8.
inline std::string byte_level_char(int byte) {
  const auto printable = [](int b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  int code = byte;
  if (!printable(byte)) {
    code = 0x100;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// Byte-level BPE: ids 0-255 are the bytes, then the tokens that `merges` make, then control tokens.
inline core::GgufVocabulary byte_level_vocabulary(const std::vector<std::string>& merges,
                                                  const std::vector<std::string>& control,
                                                  const std::string& pre = "smollm") {
  core::GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = pre;
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.push_back(byte_level_char(byte));
  for (const std::string& merge : merges) {
    const std::size_t blank = merge.find(' ');
    vocabulary.tokens.push_back(merge.substr(0, blank) + merge.substr(blank + 1));
  }
  vocabulary.merges = merges;
  vocabulary.types.assign(vocabulary.tokens.size(), 1);
  for (const std::string& token : control) {
    vocabulary.tokens.push_back(token);
    vocabulary.types.push_back(3);
  }
  return vocabulary;
}

// SentencePiece: <unk>, <s>, </s>, the 256 bytes, then `pieces` with falling scores.
inline core::GgufVocabulary sentence_piece_vocabulary(const std::vector<std::string>& pieces) {
  core::GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = {"<unk>", "<s>", "</s>"};
  vocabulary.types = {2, 3, 3};
  const char* digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">");
    vocabulary.types.push_back(6);
  }
  vocabulary.scores.assign(vocabulary.tokens.size(), 0.0F);
  for (const std::string& piece : pieces) {
    vocabulary.scores.push_back(-static_cast<float>(vocabulary.tokens.size()));
    vocabulary.tokens.push_back(piece);
    vocabulary.types.push_back(1);
  }
  vocabulary.unknown = 0;
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  return vocabulary;
}

inline std::string joined(StreamDecoder& stream, const std::vector<TokenId>& ids) {
  std::string text;
  for (const TokenId id : ids) text += stream.push(id);
  return text + stream.flush();
}

}  // namespace bodega::text
