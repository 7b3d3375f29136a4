#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "http/message.h"

namespace bodega::http {

// How an answer's end is told on the wire.
struct Framing {
  int version = 11;        // of the request
  bool keep_alive = true;  // after this answer
  int keep_alive_s = 75;   // told to the client, so that it does not race our close
  bool chunked = false;
  std::optional<std::size_t> content_length;
};

bool status_has_body(int status);  // not 1xx, 204 and 304

// Status line and headers up to the empty line. Hop-by-hop headers of `headers` are left out: only
// the framing decides them. Control characters in values become spaces.
std::string write_head(int status, const Headers& headers, const Framing& framing);

std::string write_chunk(const std::string& bytes);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date();

const char* reason_phrase(int status);

}  // namespace bodega::http
