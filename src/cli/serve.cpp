#include "server/serve.h"

#include <memory>

#include "base/log.h"
#include "cli/option_flags.h"
#include "cli/verb.h"
#include "server/config_file.h"
#include "server/default_model.h"

namespace bodega::cli {
namespace {

struct ServeFlags {
  std::vector<std::string> models;
  std::string config;
  OptionFlags<server::ServerOptions> server;
  OptionFlags<server::LimitOptions> limits;
  OptionFlags<server::ModelOptions> model;
};

server::ServeOptions to_options(const ServeFlags& flags) {
  server::ServeOptions options;
  if (!flags.config.empty()) server::load_config_file(flags.config, options);
  flags.server.apply(options.server);
  flags.limits.apply(options.limits);
  for (server::ModelOptions& model : options.models) flags.model.apply(model);
  server::ModelOptions common;
  flags.model.apply(common);
  if (flags.models.empty() && options.models.empty()) {
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
  verb.add_option("--config", flags->config, "config.yaml; flags override it")
      ->envname("BODEGA_CONFIG");
  flags->server.declare(verb);
  flags->limits.declare(verb);
  flags->model.declare(verb, {"model_path"});
  return [flags] {
    init_logging("front");
    return server::serve(to_options(*flags));
  };
}

}  // namespace bodega::cli
