#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"

// What a user may set. Each struct has one table of fields; flags, environment variables,
// config.yaml and the worker's command line are all read and written through it, so that they
// cannot drift.
namespace bodega::server {

using StringList = std::vector<std::string>;
using StringMap = std::map<std::string, std::string>;

// The load-model fields of the wire contract that exist so far. Travels whole to the worker.
struct ModelOptions {
  std::string model_path;      // local path, hub id or hub-id:file; "" = the embedded default model
  std::string model_id;        // what clients ask for; "" = derived from the path by the front
  int context_length = 32768;  // tokens; capped by the model
  int max_concurrency = 0;     // requests running at once; 0 = as many as cb_max_num_seqs
  int queue_timeout = 300;     // seconds
  int queue_size = 100;        // waiting requests; one more is refused with 429
  std::string chat_template_file;
  std::string tool_call_parser;          // how the model writes calls; "" = as its template says
  int cb_max_num_seqs = 256;             // sequences in one step
  int cb_prefill_batch_size = 8;         // sequences that prefill in one step
  int cb_completion_batch_size = 32;     // sequences that decode in one step
  int cb_chunked_prefill_tokens = 2048;  // ceiling of a prefill chunk; 0 = whole prompts
  std::string max_gap = "2.2x";          // longest step beside running streams
  bool cb_enable_prefix_cache = true;
  std::string kv_mode = "exact";
  std::uint64_t memory_budget = 0;         // bytes for weights and KV; 0 = decided by the machine
  std::string cpu_precision = "faithful";  // or "fast": int8 activations
  int threads = 0;                         // CPU threads of the worker; 0 = decided by the machine
  std::string cache_dir;                   // "" = the user's cache folder
  bool ssd_cache = true;                   // keep KV on the SSD
  std::uint64_t ssd_budget = 0;            // bytes there; 0 = a tenth of the free disk
  std::string log_requests;                // file for `bodega replay`; holds what people wrote
  std::string scripted_model;              // tests only: file with the ids each request "samples"
};

// Bounds on what a client may take. Enforced by the front, repeated to the worker.
struct LimitOptions {
  std::uint64_t header_bytes = 16 * kKiB;
  std::uint64_t body_bytes = 64 * kMiB;
  std::uint64_t output_bytes = 256 * kKiB;  // queued for a client that reads slowly
  int connections = 2048;
  int read_deadline = 30;  // seconds, a whole request
  int idle_timeout = 75;   // seconds, keep-alive
  int write_timeout = 60;  // seconds without progress of the reader
};

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 44468;          // 0 = any free one
  StringList api_keys;       // empty = no key asked for
  StringMap model_aliases;   // asked-for name -> model id; a trailing * matches any rest
  StringList cors_origins;   // beside localhost origins; "*" = any
  StringList allowed_hosts;  // Host names beside loopback; "*" = any
  bool strict = false;       // unknown request fields are 400 instead of a warning
  int drain_seconds = 30;    // how long running answers may take after SIGTERM
  bool access_log = true;
  std::string port_file;      // tests and scripts: the bound port is written here
  StringList worker_command;  // tests only: runs instead of this program
};

struct ServeOptions {
  ServerOptions server;
  LimitOptions limits;
  std::vector<ModelOptions> models;  // the first is the default model; empty = the embedded one
};

// `bodega worker ...`, started by the front only.
struct WorkerOptions {
  std::string socket_path;  // Unix socket to listen on, in a folder that only this user may enter
  int lifeline_fd = -1;     // read end of a pipe: end of file means that the front died
  bool strict = false;
  LimitOptions limits;
  ModelOptions model;
};

// One row of an options table.
template <class Options>
struct Field {
  using Member =
      std::variant<std::string Options::*, int Options::*, bool Options::*,
                   std::uint64_t Options::*, StringList Options::*, StringMap Options::*>;

  const char* name;  // in JSON and YAML; the flag is "--" + name with '-' for '_'
  Member member;
  const char* help;
  std::int64_t min = 0;  // bounds of an int
  std::int64_t max = INT32_MAX;
  const char* choices = "";  // a string's allowed values, comma-separated; empty = any
  bool hidden = false;       // internal or for tests: not in --help
};

// The table of each struct, in the order of the struct.
template <class Options>
const std::vector<Field<Options>>& fields();
template <>
const std::vector<Field<ModelOptions>>& fields<ModelOptions>();
template <>
const std::vector<Field<LimitOptions>>& fields<LimitOptions>();
template <>
const std::vector<Field<ServerOptions>>& fields<ServerOptions>();
// Only the worker's own members: socket_path, lifeline_fd, strict.
template <>
const std::vector<Field<WorkerOptions>>& fields<WorkerOptions>();

std::string flag_name(std::string_view field);         // "queue_size" -> "--queue-size"
std::string environment_name(std::string_view field);  // "queue_size" -> "BODEGA_QUEUE_SIZE"

// Text to value and back. Each throws Error(kConfig, ..., name) that says what is allowed.
void parse_value(std::string_view name, std::string_view text, std::string& out);
void parse_value(std::string_view name, std::string_view text, int& out);
void parse_value(std::string_view name, std::string_view text, bool& out);
void parse_value(std::string_view name, std::string_view text, std::uint64_t& out);  // 512MB, 8GiB
void parse_value(std::string_view name, std::string_view text, StringList& out);     // a,b
void parse_value(std::string_view name, std::string_view text, StringMap& out);      // a=b,c=d
std::string value_text(const std::string& value);
std::string value_text(int value);
std::string value_text(bool value);
std::string value_text(std::uint64_t value);
std::string value_text(const StringList& value);
std::string value_text(const StringMap& value);

void check_range(std::string_view name, std::int64_t value, std::int64_t min, std::int64_t max);
void check_choice(std::string_view name, const std::string& value, const char* choices);

// Sets one field from text, with its bounds and choices checked.
template <class Options>
void set_field(Options& options, const Field<Options>& field, std::string_view text) {
  std::visit(
      [&](auto member) {
        auto& value = options.*member;
        using Value = std::remove_reference_t<decltype(value)>;
        Value parsed{};
        parse_value(field.name, text, parsed);
        if constexpr (std::is_same_v<Value, int>) {
          check_range(field.name, parsed, field.min, field.max);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          check_choice(field.name, parsed, field.choices);
        }
        value = std::move(parsed);
      },
      field.member);
}

template <class Options>
std::string get_field(const Options& options, const Field<Options>& field) {
  return std::visit([&](auto member) { return value_text(options.*member); }, field.member);
}

// nullptr when the table has no such name.
template <class Options>
const Field<Options>* find_field(std::string_view name) {
  for (const auto& field : fields<Options>()) {
    if (name == field.name) return &field;
  }
  return nullptr;
}

// The arguments after "worker" that give the same options back; only what differs from the default.
std::vector<std::string> worker_arguments(const WorkerOptions& options);
// Throws Error(kConfig) on an unknown flag or a bad value.
WorkerOptions parse_worker_arguments(const std::vector<std::string>& arguments);

}  // namespace bodega::server
