#include "server/options.h"

#include <algorithm>
#include <cctype>

#include "base/errors.h"
#include "text/tool_parser.h"

namespace bodega::server {

template <>
const std::vector<Field<ModelOptions>>& fields<ModelOptions>() {
  using M = ModelOptions;
  static const std::string parsers = text::tool_format_names();
  static const std::vector<Field<M>> table = {
      {"model_path", &M::model_path, "Local path, hub id, or hub-id:file for GGUF"},
      {"model_id", &M::model_id, "Name that clients ask for"},
      {"context_length", &M::context_length, "Tokens of prompt and answer, capped by the model", 1},
      {"max_concurrency", &M::max_concurrency, "Requests running at once, 0 = no bound of its own"},
      {"queue_timeout", &M::queue_timeout, "Seconds that a request may wait", 1},
      {"queue_size", &M::queue_size, "Requests that may wait"},
      {"chat_template_file", &M::chat_template_file, "Chat template in place of the model's own"},
      {"tool_call_parser", &M::tool_call_parser,
       "How the model writes tool calls; default: as its chat template says", 0, 0,
       parsers.c_str()},
      {"cb_max_num_seqs", &M::cb_max_num_seqs, "Sequences in one step", 1, 4096},
      {"cb_prefill_batch_size", &M::cb_prefill_batch_size, "Sequences that prefill in one step", 1},
      {"cb_completion_batch_size", &M::cb_completion_batch_size,
       "Sequences that decode in one step", 1},
      {"cb_chunked_prefill_tokens", &M::cb_chunked_prefill_tokens,
       "Ceiling of a prefill chunk, 0 = whole prompts"},
      {"max_gap", &M::max_gap,
       "Longest step while answers stream: 2.2x a plain one, or a time such as 80ms"},
      {"cb_enable_prefix_cache", &M::cb_enable_prefix_cache, "Reuse the KV of shared prefixes"},
      {"kv_mode", &M::kv_mode, "How KV is kept", 0, 0, "exact"},
      {"memory_budget", &M::memory_budget, "Bytes for weights and KV, such as 6GiB; 0 = automatic"},
      {"cpu_precision", &M::cpu_precision,
       "Activations on the CPU: 16 bits, or 8 that are faster and less exact", 0, 0,
       "faithful,fast"},
      {"threads", &M::threads, "CPU threads, 0 = automatic", 0, 1024},
      {"cache_dir", &M::cache_dir,
       "Folder for measured prices and KV blocks; empty = the user's cache folder"},
      {"ssd_cache", &M::ssd_cache, "Keep the KV of shared prefixes on the SSD"},
      {"ssd_budget", &M::ssd_budget,
       "Bytes of KV on the SSD; 0 = a tenth of the free disk, at most 32 GiB"},
      {"log_requests", &M::log_requests,
       "Append every request and its output ids to this file, for replay"},
      {"scripted_model", &M::scripted_model, "Tests only: ids to sample", 0, 0, "", true},
  };
  return table;
}

template <>
const std::vector<Field<LimitOptions>>& fields<LimitOptions>() {
  using L = LimitOptions;
  static const std::vector<Field<L>> table = {
      {"header_bytes", &L::header_bytes, "Longest request head"},
      {"body_bytes", &L::body_bytes, "Longest request body"},
      {"output_bytes", &L::output_bytes, "Bytes queued for a client that reads slowly"},
      {"connections", &L::connections, "Open connections", 1, 1000000},
      {"read_deadline", &L::read_deadline, "Seconds for a whole request", 1, 86400},
      {"idle_timeout", &L::idle_timeout, "Seconds of keep-alive", 1, 86400},
      {"write_timeout", &L::write_timeout, "Seconds without progress of a reader", 1, 86400},
  };
  return table;
}

template <>
const std::vector<Field<ServerOptions>>& fields<ServerOptions>() {
  using S = ServerOptions;
  static const std::vector<Field<S>> table = {
      {"host", &S::host, "Address to listen on"},
      {"port", &S::port, "Port to listen on, 0 = any free one", 0, 65535},
      {"api_keys", &S::api_keys, "Keys of which a client must send one"},
      {"model_aliases", &S::model_aliases, "Other names of models, name=id; a trailing * matches"},
      {"cors_origins", &S::cors_origins, "Browser origins allowed beside localhost, * = any"},
      {"allowed_hosts", &S::allowed_hosts, "Host names answered beside loopback, * = any"},
      {"strict", &S::strict, "Refuse unknown request fields"},
      {"drain_seconds", &S::drain_seconds, "Time for running answers after SIGTERM", 0, 86400},
      {"access_log", &S::access_log, "Log one line a request"},
      {"port_file", &S::port_file, "Write the bound port to this file"},
      {"worker_command", &S::worker_command, "Tests only: program to run", 0, 0, "", true},
  };
  return table;
}

template <>
const std::vector<Field<WorkerOptions>>& fields<WorkerOptions>() {
  using W = WorkerOptions;
  static const std::vector<Field<W>> table = {
      {"socket_path", &W::socket_path, "Unix socket to listen on"},
      {"lifeline_fd", &W::lifeline_fd, "Pipe whose end means that the front died", -1},
      {"strict", &W::strict, "Refuse unknown request fields"},
  };
  return table;
}

std::string flag_name(std::string_view field) {
  std::string flag = "--" + std::string(field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string environment_name(std::string_view field) {
  std::string name = "BODEGA_";
  for (const char c : field) {
    name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

namespace {

template <class Options>
void append_arguments(const Options& options, std::vector<std::string>& arguments) {
  const Options defaults;
  for (const auto& field : fields<Options>()) {
    const std::string value = get_field(options, field);
    if (value == get_field(defaults, field)) continue;
    arguments.push_back(flag_name(field.name));
    arguments.push_back(value);
  }
}

// True when one of the table's flags was meant.
template <class Options>
bool take_argument(Options& options, const std::string& flag, const std::string& value) {
  for (const auto& field : fields<Options>()) {
    if (flag != flag_name(field.name)) continue;
    set_field(options, field, value);
    return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> worker_arguments(const WorkerOptions& options) {
  std::vector<std::string> arguments;
  append_arguments(options, arguments);
  append_arguments(options.limits, arguments);
  append_arguments(options.model, arguments);
  return arguments;
}

WorkerOptions parse_worker_arguments(const std::vector<std::string>& arguments) {
  WorkerOptions options;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    const std::string& flag = arguments[i];
    if (i + 1 == arguments.size()) {
      throw Error(ErrorKind::kConfig, "The worker's flag " + flag + " lacks a value.");
    }
    const std::string& value = arguments[i + 1];
    if (!take_argument(options, flag, value) && !take_argument(options.limits, flag, value) &&
        !take_argument(options.model, flag, value)) {
      throw Error(ErrorKind::kConfig, "The worker does not know the flag " + flag + ".");
    }
  }
  return options;
}

}  // namespace bodega::server
