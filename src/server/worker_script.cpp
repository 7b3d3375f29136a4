#include "server/worker_script.h"

#include <fstream>
#include <utility>

#include "api/fields.h"
#include "base/errors.h"

namespace bodega::server {
namespace {

namespace json = boost::json;

using Vocabulary = ScriptBook::Vocabulary;

void append_bytes(const json::object& step, const Vocabulary& vocabulary,
                  std::vector<core::TokenId>& ids) {
  api::Fields fields(step, "script");
  const std::string bytes = fields.string("bytes").value_or("");
  const auto count = static_cast<std::size_t>(
      fields.integer("count").value_or(static_cast<std::int64_t>(bytes.size())));
  for (const char byte : bytes.substr(0, count)) {
    ids.push_back(vocabulary.byte_token(static_cast<unsigned char>(byte)));
  }
}

ScriptBook::Script read_script(api::Fields& fields, const Vocabulary& vocabulary) {
  ScriptBook::Script script;
  const json::array* steps = fields.array("script");
  if (steps == nullptr) api::refuse("script", "is missing");
  for (const json::value& step : *steps) {
    if (step.is_object()) {
      append_bytes(step.get_object(), vocabulary, script.ids);
    } else if (step.is_string()) {
      const std::vector<core::TokenId> ids = vocabulary.encode(step.get_string());
      script.ids.insert(script.ids.end(), ids.begin(), ids.end());
    } else {
      script.ids.push_back(static_cast<core::TokenId>(api::as_integer(step, "script")));
    }
  }
  script.fail_after = static_cast<int>(fields.integer("fail_after").value_or(-1));
  return script;
}

}  // namespace

ScriptBook::ScriptBook(const std::string& file, const Vocabulary& vocabulary) {
  std::ifstream lines(file);
  if (!lines)
    throw Error(ErrorKind::kConfig, "Cannot read the scripts in " + file, "scripted_model");
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const json::object object = api::parse_object(line, "A line of " + file);
    api::Fields fields(object);
    std::string name = fields.string("name").value_or("");
    scripts_[std::move(name)] = read_script(fields, vocabulary);
  }
}

const ScriptBook::Script& ScriptBook::find(std::string_view name) const {
  const auto found = scripts_.find(name);
  if (found != scripts_.end()) return found->second;
  throw Error(ErrorKind::kInvalidRequest, "There is no script " + std::string(name) + ".",
              "metadata.script");
}

}  // namespace bodega::server
