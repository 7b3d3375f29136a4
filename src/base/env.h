#pragma once

#include <cstdint>
#include <optional>
#include <string>

// Environment variables, checked: a value that does not parse throws Error(kConfig) with the
// variable's name. An empty variable counts as unset.
namespace bodega {

std::optional<std::string> env_string(const char* name);
std::optional<std::int64_t> env_int(const char* name, std::int64_t min, std::int64_t max);
std::optional<bool> env_flag(const char* name);            // 1/0, true/false, yes/no, on/off
std::optional<std::uint64_t> env_bytes(const char* name);  // "512MiB", see bytes.h

}  // namespace bodega
