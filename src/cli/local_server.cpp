#include "cli/local_server.h"

#include <cstdlib>
#include <future>
#include <utility>

#include "base/errors.h"
#include "server/default_model.h"
#include "server/front.h"

namespace bodega::cli {
namespace {

constexpr std::chrono::milliseconds kGrace{2000};

// The worker is a process of its own and takes its log level from here; on a terminal that somebody
// chats in, it should speak up only when something is wrong.
void quiet_worker() { ::setenv("BODEGA_LOG", "warn", 0); }

}  // namespace

class LocalServer::Impl {
 public:
  explicit Impl(server::ServeOptions options) : front_(std::move(options)) {
    std::promise<std::string> loaded;
    front_.start([&loaded](const std::string& /*model*/, const std::string& failure) {
      loaded.set_value(failure);
    });
    const std::string failure = loaded.get_future().get();
    if (!failure.empty()) throw Error(ErrorKind::kConfig, failure);
  }
  ~Impl() {
    std::promise<void> gone;
    front_.unload_all(kGrace, [&gone] { gone.set_value(); });
    gone.get_future().wait();
    front_.stop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::uint16_t port() const { return front_.port(); }

 private:
  server::Front front_;
};

LocalServer::LocalServer(server::ServeOptions options) {
  quiet_worker();
  impl_ = std::make_unique<Impl>(std::move(options));
}

LocalServer::~LocalServer() = default;

ServerAddress LocalServer::address() const {
  ServerAddress address;
  address.endpoint.port = impl_->port();
  return address;
}

server::ServeOptions local_options(const server::ModelOptions& model) {
  server::ServeOptions options;
  options.server.port = 0;
  options.server.access_log = false;
  options.models.push_back(model);
  if (model.model_path.empty() || server::is_default_model(model.model_path)) {
    server::use_default_model(options.models.front());
  } else if (model.model_id.empty()) {
    options.models.front().model_id = model.model_path;
  }
  return options;
}

}  // namespace bodega::cli
