#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "cli/client.h"

namespace bodega::cli {

// --host, --port and --api-key of verbs that talk to a running server.
struct ConnectionFlags {
  std::string host = "127.0.0.1";
  std::uint16_t port = 44468;
  std::string api_key;

  void declare(CLI::App& verb) {
    verb.add_option("--host", host, "Host of a running server")
        ->envname("BODEGA_HOST")
        ->capture_default_str();
    verb.add_option("--port", port, "Its port")->envname("BODEGA_PORT")->capture_default_str();
    verb.add_option("--api-key", api_key, "Its API key")->envname("BODEGA_API_KEY");
  }

  ServerAddress address() const {
    ServerAddress address;
    address.endpoint.host = host;
    address.endpoint.port = port;
    address.api_key = api_key;
    return address;
  }
};

}  // namespace bodega::cli
