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
// A string is tokenised on its own, so that its edges are token edges; "bytes" gives a token a byte;
// a number is an id. After the script the model's end token follows. A request names its script in
// metadata.script. `fail_after` makes the request fail once so many tokens have come.
class ScriptBook {
 public:
  using Encode = std::function<std::vector<core::TokenId>(std::string_view)>;

  struct Script {
    std::vector<core::TokenId> ids;
    int fail_after = -1;  // -1: never
  };

  ScriptBook(const std::string& file, const Encode& encode);  // throws Error(kConfig)

  const Script& find(std::string_view name) const;  // throws Error(kInvalidRequest)

 private:
  std::map<std::string, Script, std::less<>> scripts_;
};

}  // namespace bodega::server
