#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/request.h"

namespace bodega::server {

// Tests only: what --scripted-model makes requests "sample". The file has one JSON object a line:
//   {"name": "emoji", "script": ["Hi ", {"bytes": "🙂"}, 42], "fail_after": 2}
// A string is tokenised on its own, so that its edges are token edges; "bytes" gives a token a byte
// (only the first "count" of them where that is given); a number is an id. After the script the
// model's end token follows. A request names its script in metadata.script. `fail_after` makes the
// request fail once so many tokens have come.
class ScriptBook {
 public:
  // What a script needs of a tokenizer.
  struct Vocabulary {
    std::function<std::vector<core::TokenId>(std::string_view text)> encode;
    std::function<core::TokenId(unsigned char byte)> byte_token;
  };

  struct Script {
    std::vector<core::TokenId> ids;
    int fail_after = -1;  // -1: never
  };

  ScriptBook(const std::string& file, const Vocabulary& vocabulary);  // throws Error(kConfig)

  const Script& find(std::string_view name) const;  // throws Error(kInvalidRequest)

 private:
  std::map<std::string, Script, std::less<>> scripts_;
};

}  // namespace bodega::server
