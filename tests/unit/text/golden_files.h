#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace bodega::text {

namespace json = boost::json;

inline std::string read_golden(const std::string& name) {
  std::ifstream file(std::string(BODEGA_SOURCE_DIR) + "/tests/golden/text/" + name,
                     std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string streamed(const std::shared_ptr<const Tokenizer>& tokenizer,
                            const std::vector<TokenId>& ids) {
  StreamDecoder stream(tokenizer, false);
  std::string text;
  for (const TokenId id : ids) text += stream.push(id);
  return text + stream.flush();
}

// `expected`: "plain" ids, "parsed" ids where control tokens make a difference, "decoded" text
// where it differs from the text itself.
inline void expect_same_ids(const std::shared_ptr<const Tokenizer>& tokenizer,
                            const json::array& texts, const json::value& expected,
                            const std::string& name) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string text(std::string_view(texts[i].as_string()));
    const json::value& parsed = expected.at("parsed").at(i);
    const json::value& decoded = expected.at("decoded").at(i);
    const auto plain_ids = json::value_to<std::vector<TokenId>>(expected.at("plain").at(i));
    const auto parsed_ids =
        parsed.is_null() ? plain_ids : json::value_to<std::vector<TokenId>>(parsed);
    const std::string decoded_text(decoded.is_null() ? text
                                                     : std::string_view(decoded.as_string()));
    EXPECT_EQ(tokenizer->encode(text, false, false), plain_ids) << name << ": " << text;
    EXPECT_EQ(tokenizer->encode(text, false, true), parsed_ids) << name << ": " << text;
    EXPECT_EQ(tokenizer->encode_rendered(tokenizer->guard(text)), plain_ids)
        << name << ": " << text;
    EXPECT_EQ(tokenizer->decode(plain_ids, false), decoded_text) << name << ": " << text;
    EXPECT_EQ(streamed(tokenizer, plain_ids), decoded_text) << name << ": " << text;
  }
}

}  // namespace bodega::text
