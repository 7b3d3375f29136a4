#include "server/worker_log.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "api/fields.h"
#include "base/errors.h"
#include "base/log.h"

namespace bodega::server {
namespace {

namespace json = boost::json;

std::string required(api::Fields& fields, std::string_view name) {
  const std::optional<std::string> text = fields.string(name);
  if (!text) api::refuse(fields.path(name), "is missing");
  return *text;
}

}  // namespace

std::string to_line(const LoggedAnswer& answer) {
  json::array choices;
  for (const std::vector<core::TokenId>& ids : answer.choices) {
    choices.push_back(json::array(ids.begin(), ids.end()));
  }
  std::string line = api::to_text(json::object{{"id", answer.id},
                                               {"route", answer.route},
                                               {"fingerprint", answer.fingerprint},
                                               {"seed", answer.seed},
                                               {"choices", std::move(choices)}});
  line.pop_back();
  return line.append(",\"request\":").append(answer.body).append("}");
}

LoggedAnswer parse_logged_answer(std::string_view line) {
  const json::object object = api::parse_object(line, "The log line");
  api::Fields fields(object);
  LoggedAnswer answer;
  answer.id = required(fields, "id");
  answer.route = required(fields, "route");
  answer.fingerprint = required(fields, "fingerprint");
  const json::value* seed = fields.find("seed");
  if (seed == nullptr || !seed->is_number()) api::refuse("seed", "is missing");
  answer.seed = seed->to_number<std::uint64_t>();
  const json::array* choices = fields.array("choices");
  const json::object* request = fields.object("request");
  if (choices == nullptr) api::refuse("choices", "is missing");
  if (request == nullptr) api::refuse("request", "is missing");
  answer.body = api::to_text(*request);
  for (const json::value& ids : *choices) {
    std::vector<core::TokenId> kept;
    for (const json::value& id : api::as_array(ids, "choices")) {
      kept.push_back(static_cast<core::TokenId>(api::as_integer(id, "choices")));
    }
    answer.choices.push_back(std::move(kept));
  }
  return answer;
}

RequestLog::RequestLog(const std::string& path) : file_(path, std::ios::app) {
  if (!file_)
    throw Error(ErrorKind::kConfig, "Cannot write the request log " + path, "log_requests");
  ::chmod(path.c_str(), S_IRUSR | S_IWUSR);  // it holds what people wrote
}

void RequestLog::write(const LoggedAnswer& answer) {
  const std::string line = to_line(answer);
  const std::lock_guard lock(mutex_);
  if (file_ << line << '\n' << std::flush) return;
  file_.clear();
  if (std::exchange(failed_, true)) return;
  log_error("The request log cannot be written: requests are missing from it",
            {{"error", std::generic_category().message(errno)}});
}

}  // namespace bodega::server
