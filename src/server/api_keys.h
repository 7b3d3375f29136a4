#pragma once

#include <string_view>

#include "http/message.h"
#include "server/options.h"

namespace bodega::server {

// The keys of which a client must present one; with none configured every client is let in.
class ApiKeys {
 public:
  explicit ApiKeys(StringList keys) : keys_(std::move(keys)) {}

  // Index of the presented key (Authorization: Bearer, or x-api-key), -1 where none is asked for.
  // Throws Error(kUnauthorized). Takes the same time for every wrong key of one length.
  int check(const http::Request& request) const;

 private:
  StringList keys_;
};

bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace bodega::server
