#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/options.h"

namespace bodega::server {

// The process that owns the port: policy, keys, the models' workers, and the relay between clients
// and them. It handles no tokens.
class Front {
 public:
  // Binds the port, and nothing more. Throws Error(kConfig).
  explicit Front(ServeOptions options);
  ~Front();  // stops
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  std::uint16_t port() const;

  // Begins to answer and to load the models. `on_loaded` is called for each on the front's thread,
  // with the reason where it failed.
  void start(std::function<void(const std::string& model, const std::string& failure)> on_loaded);

  void stop_accepting();  // running answers go on
  int open_answers() const;
  // Ends the workers: SIGTERM, after `grace` SIGKILL. `on_gone` is called on the front's thread.
  void unload_all(std::chrono::milliseconds grace, std::function<void()> on_gone);
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bodega::server
