#include <memory>

#include "base/log.h"
#include "server/default_model.h"
#include "cli/option_flags.h"
#include "cli/verb.h"
#include "server/serve.h"

namespace bodega::cli {
namespace {

struct ServeFlags {
  std::vector<std::string> models;
  OptionFlags<server::ServerOptions> server;
  OptionFlags<server::LimitOptions> limits;
  OptionFlags<server::ModelOptions> model;
};

server::ServeOptions to_options(const ServeFlags& flags) {
  server::ServeOptions options;
  flags.server.apply(options.server);
  flags.limits.apply(options.limits);
  server::ModelOptions common;
  flags.model.apply(common);
  if (flags.models.empty()) {
    server::use_default_model(common);
    options.models.push_back(common);
  }
  for (const std::string& path : flags.models) {
    options.models.push_back(common);
    options.models.back().model_path = path;
    if (server::is_default_model(path)) server::use_default_model(options.models.back());
  }
  return options;
}

}  // namespace

Run add_serve(CLI::App& verb) {
  const auto flags = std::make_shared<ServeFlags>();
  verb.add_option("MODEL", flags->models, "Folder or GGUF file; none: the embedded default model");
  flags->server.declare(verb);
  flags->limits.declare(verb);
  flags->model.declare(verb, {"model_path"});
  return [flags] {
    init_logging("front");
    return server::serve(to_options(*flags));
  };
}

}  // namespace bodega::cli
