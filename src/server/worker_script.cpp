#include "server/worker_script.h"

#include <fstream>
#include <utility>

#include "api/fields.h"
#include "base/errors.h"

namespace bodega::server {
namespace {

namespace json = boost::json;

void append(const json::value& step, const ScriptBook::Encode& encode,
            std::vector<core::TokenId>& ids) {
  if (step.is_int64()) {
    ids.push_back(static_cast<core::TokenId>(step.get_int64()));
    return;
  }
  if (step.is_string()) {
    for (const core::TokenId id : encode(step.get_string())) ids.push_back(id);
    return;
  }
  for (const char byte : api::as_string(api::as_object(step, "script").at("bytes"), "bytes")) {
    for (const core::TokenId id : encode(std::string_view(&byte, 1))) ids.push_back(id);
  }
}

ScriptBook::Script read_script(api::Fields& fields, const ScriptBook::Encode& encode) {
  ScriptBook::Script script;
  if (const json::array* steps = fields.array("script")) {
    for (const json::value& step : *steps) append(step, encode, script.ids);
  }
  script.fail_after = static_cast<int>(fields.integer("fail_after").value_or(-1));
  return script;
}

}  // namespace

ScriptBook::ScriptBook(const std::string& file, const Encode& encode) {
  std::ifstream lines(file);
  if (!lines) throw Error(ErrorKind::kConfig, "Cannot read the scripts in " + file, "scripted_model");
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const json::object object = api::parse_object(line, "A line of " + file);
    api::Fields fields(object);
    std::string name = fields.string("name").value_or("");
    scripts_[std::move(name)] = read_script(fields, encode);
  }
}

const ScriptBook::Script& ScriptBook::find(std::string_view name) const {
  const auto found = scripts_.find(name);
  if (found != scripts_.end()) return found->second;
  throw Error(ErrorKind::kInvalidRequest, "There is no script " + std::string(name) + ".",
              "metadata.script");
}

}  // namespace bodega::server
