#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>

#include "api/json.h"
#include "base/errors.h"
#include "cli/connection_flags.h"
#include "cli/local_server.h"
#include "cli/option_flags.h"
#include "cli/token_diff.h"
#include "cli/verb.h"
#include "server/worker_log.h"

namespace bodega::cli {
namespace {

namespace json = boost::json;
using Choices = std::vector<std::vector<core::TokenId>>;

struct ReplayFlags {
  std::string file;
  std::string model;
  bool running = false;
  ConnectionFlags connection;
  OptionFlags<server::ModelOptions> model_options;
};

// The logged request with its seed written out, unstreamed, and asking for the ids.
json::object replay_body(const server::LoggedAnswer& logged) {
  json::object body = api::parse_object(logged.body, "The logged request");
  body["seed"] = logged.seed;
  body["return_token_ids"] = true;
  body["stream"] = false;
  body.erase("stream_options");
  body.erase("model");
  return body;
}

Choices ids_of(const json::object& answer) {
  Choices choices;
  for (const json::value& choice : answer.at("choices").as_array()) {
    std::vector<core::TokenId> ids;
    for (const json::value& id : choice.at("token_ids").as_array()) {
      ids.push_back(id.to_number<core::TokenId>());
    }
    choices.push_back(std::move(ids));
  }
  return choices;
}

std::string spell(Client& client, const std::vector<core::TokenId>& ids, std::size_t at) {
  if (at >= ids.size()) return "the end";
  const json::object text =
      client.post("/detokenize", {{"tokens", json::array{static_cast<std::int64_t>(ids[at])}}});
  return fmt::format("{} {}", ids[at], json::serialize(text.at("prompt")));
}

const std::vector<core::TokenId>& choice_of(const Choices& choices, std::size_t at) {
  static const std::vector<core::TokenId> kNothing;
  return at < choices.size() ? choices[at] : kNothing;
}

// Prints where the answers part; true when they are equal.
bool compare(Client& client, const server::LoggedAnswer& logged, const Choices& now) {
  const std::optional<TokenDifference> first = first_difference(logged.choices, now);
  if (!first) return true;
  fmt::print("{}: choice {}, token {}: was {}, is now {}\n", logged.id, first->choice, first->token,
             spell(client, choice_of(logged.choices, first->choice), first->token),
             spell(client, choice_of(now, first->choice), first->token));
  return false;
}

// True when the answer is the same again.
bool replay_line(Client& client, const std::string& line) {
  const server::LoggedAnswer logged = server::parse_logged_answer(line);
  const json::object answer = client.post(logged.route, replay_body(logged));
  const std::string fingerprint(answer.at("system_fingerprint").as_string());
  if (fingerprint != logged.fingerprint) {
    fmt::print("{}: the fingerprint was {} and is now {}; equal tokens are not promised\n",
               logged.id, logged.fingerprint, fingerprint);
  }
  if (!compare(client, logged, ids_of(answer))) return false;
  fmt::print("{}: equal\n", logged.id);
  return true;
}

// All of them before the first is sent: the server may append to the very file.
std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::kConfig, "Cannot read " + path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

int replay(const ReplayFlags& flags) {
  const std::vector<std::string> lines = read_lines(flags.file);
  std::unique_ptr<LocalServer> own;
  ServerAddress address = flags.connection.address();
  if (!flags.running) {
    server::ModelOptions model;
    flags.model_options.apply(model);
    model.model_path = flags.model;
    own = std::make_unique<LocalServer>(local_options(model));
    address = own->address();
  }
  Client client(address);
  int different = 0;
  for (const std::string& line : lines) different += replay_line(client, line) ? 0 : 1;
  fmt::print("{} replayed, {} different\n", lines.size(), different);
  return different == 0 ? 0 : 1;
}

}  // namespace

Run add_replay(CLI::App& verb) {
  const auto flags = std::make_shared<ReplayFlags>();
  verb.add_option("FILE", flags->file, "What serve --log-requests wrote")->required();
  verb.add_option("--model", flags->model, "Model to load; none: the default")
      ->envname("BODEGA_MODEL");
  verb.add_flag("--running", flags->running, "Ask the server that runs at --host and --port")
      ->envname("BODEGA_RUNNING");
  flags->connection.declare(verb);
  flags->model_options.declare(verb, {"model_path", "model_id"});
  return [flags] { return replay(*flags); };
}

}  // namespace bodega::cli
