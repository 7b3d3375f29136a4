#pragma once

#include <memory>
#include <string>

#include "cli/client.h"
#include "server/options.h"

namespace bodega::cli {

// A server of this process's own on a free loopback port, for verbs that find none running. Its
// model runs in a worker as always, and ends with it.
class LocalServer {
 public:
  // Returns when the model is ready. Throws Error where it cannot be loaded.
  explicit LocalServer(server::ServeOptions options);
  ~LocalServer();
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  ServerAddress address() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The options of a LocalServer for one model; "" = the default model.
server::ServeOptions local_options(const server::ModelOptions& model);

}  // namespace bodega::cli
