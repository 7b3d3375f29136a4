#include "server/worker_engine_model.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/errors.h"
#include "base/folders.h"
#include "base/hash.h"
#include "engine/load.h"
#include "registry/process.h"
#include "server/default_model.h"
#include "server/gap_option.h"
#include "server/worker_script.h"
#include "text/grammar.h"

namespace bodega::server {
namespace {

namespace json = boost::json;

constexpr double kBytesPerMb = 1024.0 * 1024.0;

double rounded(double value) { return std::round(value * 1000) / 1000; }

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorKind::kConfig, "Cannot read the chat template " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A known option that the scheduler has no use for: refused by name, unless it says nothing.
void refuse_unused(const ModelOptions& options) {
  if (options.cb_completion_batch_size == ModelOptions{}.cb_completion_batch_size) return;
  throw Error(ErrorKind::kConfig,
              "cb_completion_batch_size is not supported: every running sequence decodes in every "
              "step; bound them with cb_max_num_seqs.",
              "cb_completion_batch_size");
}

engine::EngineConfig engine_config(const ModelOptions& options) {
  engine::EngineConfig config;
  config.max_sequences =
      options.max_concurrency > 0 ? options.max_concurrency : options.cb_max_num_seqs;
  config.max_waiting = options.queue_size;
  config.queue_timeout_s = options.queue_timeout;
  config.prefix_cache = options.cb_enable_prefix_cache;
  config.sampling_threads = options.threads;
  config.max_prefills = options.cb_prefill_batch_size;
  config.max_step_tokens = options.cb_chunked_prefill_tokens > 0
                               ? options.cb_chunked_prefill_tokens
                               : std::max(config.max_step_tokens, options.context_length);
  const MaxGap gap = parse_max_gap(options.max_gap);
  config.max_gap_factor = gap.factor;
  config.max_gap_s = gap.seconds;
  return config;
}

// The kernels are in the program: another build may add up in another order, so its answers have
// another fingerprint, and its KV is another.
std::string program_hash() {
  Hasher128 hasher;
  std::ifstream program(registry::own_program(), std::ios::binary);
  std::vector<char> buffer(std::size_t{1} << 20);
  while (program.read(buffer.data(), static_cast<std::streamsize>(buffer.size())),
         program.gcount() > 0) {
    hasher.add(std::string_view(buffer.data(), static_cast<std::size_t>(program.gcount())));
  }
  return to_hex(hasher.finish());
}

std::string fingerprint_of(const std::string& model, const std::string& program) {
  Hasher128 hasher;
  hasher.add(std::string_view(model)).add(std::string_view(program));
  return "fp_" + to_hex(hasher.finish()).substr(0, 16);
}

engine::LoadOptions load_options(const ModelOptions& options, const std::string& program) {
  refuse_unused(options);
  engine::LoadOptions load;
  load.path = options.model_path.empty() ? default_model_path() : options.model_path;
  if (!options.chat_template_file.empty()) {
    load.chat_template = read_text(options.chat_template_file);
  }
  load.context_length = options.context_length;
  load.memory_bytes = static_cast<std::int64_t>(options.memory_budget);
  load.threads = options.threads;
  load.fast = options.cpu_precision == "fast";
  load.cache_folder = options.cache_dir.empty() ? default_cache_folder() : options.cache_dir;
  load.ssd_cache = options.ssd_cache;
  load.ssd_bytes = static_cast<std::int64_t>(options.ssd_budget);
  load.engine = engine_config(options);
  load.engine.build = program;
  return load;
}

json::object cost_report(const cost::CostReport& cost) {
  return {{"bandwidth_gb_s", rounded(cost.bandwidth_gb_s)},
          {"gflops", rounded(cost.gflops)},
          {"ridge_rows", rounded(cost.ridge_rows)},
          {"decode_step_ms", rounded(cost.decode_step_s * 1e3)},
          {"row_ms", rounded(cost.row_s * 1e3)},
          {"ssd_read_gb_s", rounded(cost.ssd_read_gb_s)},
          {"ssd_write_gb_s", rounded(cost.ssd_write_gb_s)},
          {"prediction_error", rounded(cost.error)},
          {"steps", cost.steps}};
}

class EngineModel final : public WorkerModel {
 public:
  explicit EngineModel(const ModelOptions& options)
      : program_(program_hash()), loaded_(engine::load_model(load_options(options, program_))) {
    facts_.id = options.model_id;
    facts_.path = options.model_path;
    facts_.fingerprint = fingerprint_of(loaded_.fingerprint, program_);
    facts_.created_unix_s = unix_seconds();
    facts_.context_length = loaded_.context_length;
    facts_.vocab_size = loaded_.config.vocab_size;
    facts_.weight_bytes = loaded_.weight_bytes;
    for (core::TokenId id = 0; id < facts_.vocab_size; ++id) {
      longest_token_ = std::max(longest_token_, token_bytes(id).size());
    }
    if (options.scripted_model.empty()) return;
    scripts_.emplace(
        options.scripted_model,
        ScriptBook::Vocabulary{[this](std::string_view text) { return encode(text, false, true); },
                               [this](unsigned char byte) { return byte_token(byte); }});
  }

  const ModelFacts& facts() const override { return facts_; }

  std::vector<core::TokenId> encode(std::string_view text, bool add_special,
                                    bool parse_special) const override {
    refuse_hopeless(text);
    return loaded_.tokenizer->encode(text, add_special, parse_special);
  }
  std::string decode(std::span<const core::TokenId> ids, bool skip_special) const override {
    return loaded_.tokenizer->decode(ids, skip_special);
  }
  std::string token_bytes(core::TokenId id) const override {
    return loaded_.tokenizer->token_bytes(id);
  }
  std::string guard(std::string_view message_text) const override {
    return loaded_.tokenizer->guard(message_text);
  }
  std::vector<core::TokenId> encode_rendered(std::string_view rendered) const override {
    refuse_hopeless(rendered);
    return loaded_.tokenizer->encode_rendered(rendered);
  }
  std::string render(std::string_view context_json) const override {
    if (loaded_.chat_template) return loaded_.chat_template->render(context_json);
    throw Error(ErrorKind::kInvalidRequest,
                "This model has no chat template: use /v1/completions, or load it with a "
                "chat_template_file.",
                "messages");
  }
  bool template_mentions(std::string_view word) const override {
    return loaded_.chat_template && loaded_.chat_template->mentions(word);
  }

  std::shared_ptr<const core::TokenConstraint> bind(const core::GrammarSource* source,
                                                    const ThoughtLimit& thought) override {
    std::call_once(grammars_made_, [this] {
      grammars_ =
          std::make_unique<text::GrammarCompiler>(loaded_.tokenizer, loaded_.config.end_tokens);
    });
    text::Thought before;
    before.before = thought_before(thought.reasoning);
    before.most_tokens = thought.most_tokens;
    return grammars_->constrain(source != nullptr ? grammars_->compile(*source) : nullptr, before);
  }

  std::string_view template_source() const override { return loaded_.config.chat_template; }

  core::RequestId submit(core::Request request, engine::OutputSink sink) override {
    return loaded_.engine->submit(std::move(request), std::move(sink));
  }
  void cancel(core::RequestId id) override { loaded_.engine->cancel(id); }
  void pause(core::RequestId id, bool paused) override { loaded_.engine->pause(id, paused); }
  engine::EngineStats stats() const override { return loaded_.engine->stats(); }
  void drain(double seconds) override { loaded_.engine->drain(seconds); }

  int apply_script(std::string_view name, core::Request& request) const override {
    if (!scripts_) return -1;
    const ScriptBook::Script& script = scripts_->find(name);
    request.scripted = script.ids;
    return script.fail_after;
  }

  json::object device_report() const override {
    const engine::EngineStats stats = loaded_.engine->stats();
    return {{"exact", loaded_.exact},
            {"memory",
             {{"weights_mb", static_cast<double>(loaded_.weight_bytes) / kBytesPerMb},
              {"kv_mb", static_cast<double>(loaded_.kv_bytes) / kBytesPerMb}}},
            {"engine",
             {{"kernels", loaded_.kernels},
              {"running", stats.running},
              {"waiting", stats.waiting},
              {"steps", stats.steps},
              {"blocks_total", stats.blocks_total},
              {"blocks_free", stats.blocks_free},
              {"blocks_cached", stats.blocks_cached},
              {"ssd_bytes", stats.disk_bytes},
              {"cost_model", cost_report(stats.cost)}}}};
  }

 private:
  // Tokenizing a text that cannot fit would keep others waiting for nothing. A normaliser may
  // shorten a character to a quarter of its bytes.
  void refuse_hopeless(std::string_view text) const {
    const std::size_t least = text.size() / (4 * longest_token_);
    if (least <= static_cast<std::size_t>(facts_.context_length)) return;
    throw Error(ErrorKind::kContextLengthExceeded,
                "The text has at least " + std::to_string(least) +
                    " tokens, but the context holds " + std::to_string(facts_.context_length) +
                    ": shorten it.",
                "messages");
  }

  core::TokenId byte_token(unsigned char byte) const {
    for (core::TokenId id = 0; id < facts_.vocab_size; ++id) {
      const std::string bytes = token_bytes(id);
      if (bytes.size() == 1 && static_cast<unsigned char>(bytes[0]) == byte) return id;
    }
    throw Error(ErrorKind::kConfig, "This model has no token of the byte that a script wants.");
  }

  static text::ThoughtBefore thought_before(api::Reasoning reasoning) {
    switch (reasoning) {
      case api::Reasoning::kMayOpen:
        return text::ThoughtBefore::kMayOpen;
      case api::Reasoning::kOpen:
        return text::ThoughtBefore::kOpen;
      case api::Reasoning::kNone:
        break;
    }
    return text::ThoughtBefore::kNone;
  }

  std::string program_;
  engine::LoadedModel loaded_;
  std::once_flag grammars_made_;  // with the first request that needs them
  std::unique_ptr<text::GrammarCompiler> grammars_;
  ModelFacts facts_;
  std::size_t longest_token_ = 1;  // bytes
  std::optional<ScriptBook> scripts_;
};

}  // namespace

std::unique_ptr<WorkerModel> load_engine_model(const WorkerOptions& options) {
  return std::make_unique<EngineModel>(options.model);
}

}  // namespace bodega::server
