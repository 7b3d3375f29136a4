// Speed of a whole model's plan, in process, with random weights of a real shape: decode steps of
// several sequences and the prefill of one prompt, on the CPU or a GPU.
//   plan_bench --shape llama3-8b --device gpu --decode 1,8,32,64 --context 256 --prefill 2048
// A decode step takes the ids of the last one, runs the plan, takes the argmax of every row on the
// device and waits for the ids: what an engine does without its policy. Prints one JSON object.
#include <fmt/format.h>
#include <mlx/mlx.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/clock.h"
#include "ops/executor.h"

namespace bodega::bench {
namespace {

namespace mx = mlx::core;
using ops::Epilogue;
using ops::Norm;

struct Shape {
  const char* name;
  int layers, hidden, intermediate, heads, kv_heads, head_dim, vocab;
  bool tied, qk_norm;
};
constexpr Shape kShapes[] = {
    {"smollm2-135m", 30, 576, 1536, 9, 3, 64, 49152, true, false},
    {"qwen3-0.6b", 28, 1024, 3072, 16, 8, 128, 151936, true, true},
    {"llama3-1b", 16, 2048, 8192, 32, 8, 64, 128256, true, false},
    {"llama3-8b", 32, 4096, 14336, 32, 8, 128, 128256, false, false},
};

// Codes, scales and biases out of one random page: quick to read, never zero, of a model's
// magnitude.
class PageWeights : public ops::WeightSource {
 public:
  PageWeights(ops::WeightFormat format, int rows, int cols)
      : WeightSource(format, rows, cols), page_(std::size_t{1} << 20) {
    std::mt19937 random(static_cast<unsigned>(rows * 31 + cols));
    for (std::uint8_t& byte : page_)
      byte = static_cast<std::uint8_t>(random() % (1U << format.bits));
  }

  void read_codes(int row, int count, std::uint8_t* codes, float* scales,
                  float* biases) const override {
    const int groups = cols() / format().group_size;
    const float scale =
        std::exp2(std::round(std::log2(1.0F / std::sqrt(static_cast<float>(cols())) /
                                       static_cast<float>(1 << (format().bits - 2)))));
    for (int r = 0; r < count; ++r) {
      for (int done = 0; done < cols();) {
        const std::size_t at =
            (static_cast<std::size_t>(row + r) * 7919 + done) % (page_.size() / 2);
        const int part = std::min<int>(cols() - done, static_cast<int>(page_.size() / 2));
        std::memcpy(codes + static_cast<std::size_t>(r) * cols() + done, page_.data() + at, part);
        done += part;
      }
      std::fill_n(scales + static_cast<std::size_t>(r) * groups, groups, scale);
      std::fill_n(biases + static_cast<std::size_t>(r) * groups, groups,
                  -scale * static_cast<float>(1 << (format().bits - 1)));
    }
  }

 private:
  std::vector<std::uint8_t> page_;
};

class Recorder {
 public:
  Recorder(const Shape& shape, ops::WeightFormat format, int layers)
      : s_(shape), format_(format), layers_(layers > 0 ? layers : shape.layers) {}

  ops::Plan record() {
    const ops::MatrixId table = matrix("embed", s_.vocab, s_.hidden);
    x_ = plan_.slot("x", s_.hidden);
    qkv_ = plan_.slot("qkv", (s_.heads + 2 * s_.kv_heads) * s_.head_dim);
    attention_ = plan_.slot("attention", s_.heads * s_.head_dim);
    gated_ = plan_.slot("gated", s_.intermediate);
    group_ = plan_.kv_group({layers_, s_.kv_heads, s_.head_dim});
    std::vector<float> frequencies(s_.head_dim / 2);
    for (int i = 0; i < s_.head_dim / 2; ++i) {
      frequencies[i] =
          std::pow(500000.0F, -2.0F * static_cast<float>(i) / static_cast<float>(s_.head_dim));
    }
    frequencies_ = plan_.vector("inv_freq", frequencies);
    plan_.add(ops::Embed{table, x_});
    for (int layer = 0; layer < layers_; ++layer) record_layer(layer);
    plan_.add(
        ops::LmHead{x_, norm(s_.hidden), s_.tied ? table : matrix("head", s_.vocab, s_.hidden)});
    return plan_.finish(s_.hidden, s_.vocab, 1 << 17);
  }

 private:
  ops::MatrixId matrix(const char* name, int rows, int cols) {
    return plan_.matrix(name, std::make_shared<PageWeights>(format_, rows, cols));
  }
  Norm norm(int size) { return {plan_.vector("norm", std::vector<float>(size, 1.0F))}; }

  void record_layer(int layer) {
    const ops::AttentionShape shape{s_.heads, s_.kv_heads, s_.head_dim};
    const int width = s_.heads * s_.head_dim;
    ops::QuantLinear in{x_, norm(s_.hidden),
                        matrix("qkv", width + 2 * s_.kv_heads * s_.head_dim, s_.hidden)};
    in.out = qkv_;
    plan_.add(in);
    ops::RopeAndCacheWrite rope{qkv_, shape, s_.head_dim, false, frequencies_};
    if (s_.qk_norm) {
      rope.q_norm = norm(s_.head_dim);
      rope.k_norm = norm(s_.head_dim);
    }
    rope.kv = {group_, layer};
    plan_.add(rope);
    ops::PagedAttention attend{qkv_, attention_, shape,
                               1.0F / std::sqrt(static_cast<float>(s_.head_dim))};
    attend.kv = {group_, layer};
    plan_.add(attend);
    add_residual(attention_, "o", width);
    ops::QuantLinear up{x_, norm(s_.hidden), matrix("gate_up", 2 * s_.intermediate, s_.hidden)};
    up.epilogue = Epilogue::kSwiGlu;
    up.out = gated_;
    plan_.add(up);
    add_residual(gated_, "down", s_.intermediate);
  }
  void add_residual(ops::SlotId from, const char* name, int width) {
    ops::QuantLinear out{from, {}, matrix(name, s_.hidden, width)};
    out.epilogue = Epilogue::kResidual;
    out.out = x_;
    plan_.add(out);
  }

  const Shape& s_;
  ops::WeightFormat format_;
  int layers_;
  ops::PlanBuilder plan_;
  ops::SlotId x_ = -1, qkv_ = -1, attention_ = -1, gated_ = -1;
  ops::VectorId frequencies_ = -1;
  int group_ = 0;
};

struct Options {
  std::string shape = "smollm2-135m";
  std::string device = "cpu";
  std::vector<int> decode = {1, 8, 32, 64};
  std::vector<int> prefill = {2048};
  int context = 256;
  int steps = 20;
  int layers = 0;
  int bits = 4;
  int group = 64;
  int threads = 0;
};

class Bench {
 public:
  Bench(const Options& options, ops::Executor& executor) : o_(options), e_(executor) {}

  // Fills every sequence's cache, then decodes. Median seconds a step.
  double decode(int sequences) {
    std::vector<int> position(sequences, 0);
    for (int i = 0; i < sequences; ++i) {
      for (int at = 0; at < o_.context; at += kChunk) {
        core::Batch batch;
        add(batch, i, at, random_tokens(std::min(kChunk, o_.context - at)), sequences);
        step(batch);
      }
    }
    std::vector<int> tokens = random_tokens(sequences);
    std::vector<double> times;
    for (int i = 0; i < kWarmUp + o_.steps; ++i) {
      core::Batch batch;
      for (int q = 0; q < sequences; ++q) {
        add(batch, q, o_.context + i, {tokens[q]}, sequences);
        batch.sampled_rows.push_back(q);
      }
      const Stopwatch watch;
      tokens = step(batch);
      if (i >= kWarmUp) times.push_back(watch.seconds());
    }
    return median(times);
  }

  // The host side of a step that is sampled on the host: logits come across. Median seconds.
  double decode_to_host(int sequences) {
    std::vector<double> times;
    for (int i = 0; i < kWarmUp + o_.steps; ++i) {
      core::Batch batch;
      for (int q = 0; q < sequences; ++q) {
        add(batch, q, o_.context + i, {q + 1}, sequences);
        batch.sampled_rows.push_back(q);
      }
      const Stopwatch watch;
      mx::array logits = e_.to_host(e_.step(batch));
      mx::eval(logits);
      sink_ = sink_ + logits.data<float>()[logits.size() - 1];
      if (i >= kWarmUp) times.push_back(watch.seconds());
    }
    return median(times);
  }

  double prefill(int rows) {
    std::vector<double> times;
    for (int i = 0; i < 2 + std::min(o_.steps, 5); ++i) {
      core::Batch batch;
      add(batch, 0, 0, random_tokens(rows), 1);
      batch.sampled_rows = {rows - 1};
      const Stopwatch watch;
      step(batch);
      if (i >= 2) times.push_back(watch.seconds());
    }
    return median(times);
  }

 private:
  static constexpr int kChunk = 2048;
  static constexpr int kWarmUp = 5;

  static double median(std::vector<double>& times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
  std::vector<int> random_tokens(int count) {
    std::vector<int> tokens(count);
    for (int& t : tokens) t = static_cast<int>(random_() % e_.plan().vocab_size);
    return tokens;
  }
  // Blocks of the sequences interleave, as in a pool that has been in use.
  void add(core::Batch& batch, int id, int position, const std::vector<int>& tokens,
           int sequences) {
    core::SequenceSlice slice;
    slice.row_begin = batch.rows();
    slice.row_count = static_cast<int>(tokens.size());
    slice.position = position;
    slice.block_begin = static_cast<int>(batch.blocks.size());
    slice.block_count = core::blocks_for(position + slice.row_count);
    for (int b = 0; b < slice.block_count; ++b)
      batch.blocks.push_back(e_.pool().ref(b * sequences + id));
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
    batch.sequences.push_back(slice);
  }
  std::vector<int> step(const core::Batch& batch) {
    const mx::array logits = e_.step(batch);
    if (logits.shape(0) == 0) {
      std::vector<mx::array> slabs = e_.pool().slabs();
      mx::eval(slabs);
      return {};
    }
    mx::array best = e_.to_host(mx::argmax(logits, -1));
    mx::eval(best);
    const auto* ids = best.data<std::uint32_t>();
    return {ids, ids + best.size()};
  }

  const Options& o_;
  ops::Executor& e_;
  std::mt19937 random_{1};
  volatile float sink_ = 0;
};

Options parse(int argc, char** argv) {
  Options o;
  CLI::App app("Speed of a model's plan with random weights");
  app.add_option("--shape", o.shape, "smollm2-135m, qwen3-0.6b, llama3-1b or llama3-8b");
  app.add_option("--device", o.device, "cpu or gpu");
  app.add_option("--decode", o.decode, "numbers of sequences")->delimiter(',');
  app.add_option("--prefill", o.prefill, "lengths of a prompt, in one step")->delimiter(',');
  app.add_option("--context", o.context, "tokens in each cache before the first decode step");
  app.add_option("--steps", o.steps, "measured decode steps");
  app.add_option("--layers", o.layers, "fewer layers than the shape has");
  app.add_option("--bits", o.bits, "of the weights, affine");
  app.add_option("--group", o.group, "columns that share a scale");
  app.add_option("--threads", o.threads, "CPU threads");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return o;
}

int run(const Options& o) {
  const auto* shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                                   [&](const Shape& s) { return o.shape == s.name; });
  if (shape == std::end(kShapes)) {
    fmt::print(stderr, "No shape {}.\n", o.shape);
    return 2;
  }
  const ops::WeightFormat format{ops::WeightFormat::Kind::kAffine, o.bits, o.group,
                                 ops::FloatType::kF16};
  ops::Plan plan = Recorder(*shape, format, o.layers).record();
  ops::ExecutorOptions options;
  options.threads = o.threads;
  const int sequences = o.decode.empty() ? 1 : *std::max_element(o.decode.begin(), o.decode.end());
  const int prompt = o.prefill.empty() ? 1 : *std::max_element(o.prefill.begin(), o.prefill.end());
  const int tokens = std::max(sequences * core::blocks_for(o.context + o.steps + 16),
                              core::blocks_for(prompt) + 1);
  options.kv_bytes = plan.kv_groups.front().block_bytes() * tokens;
  const double weight_bytes = static_cast<double>(plan.weight_bytes());
  const Stopwatch loading;
  ops::Executor executor(std::move(plan), o.device == "gpu" ? mx::Device::gpu : mx::Device::cpu,
                         options);
  const double load_s = loading.seconds();
  Bench bench(o, executor);
  std::string rows;
  for (int n : o.decode) {
    const double s = bench.decode(n);
    const double host_s = bench.decode_to_host(n);
    rows += fmt::format(
        ",\n  \"decode_{}\": {{\"ms_per_step\": {:.3f}, \"tokens_per_s\": {:.0f}, "
        "\"weight_gb_per_s\": {:.0f}, \"ms_with_logits_on_host\": {:.3f}}}",
        n, s * 1e3, n / s, weight_bytes / s / 1e9, host_s * 1e3);
  }
  for (int n : o.prefill) {
    const double s = bench.prefill(n);
    rows += fmt::format(",\n  \"prefill_{}\": {{\"ms\": {:.2f}, \"tokens_per_s\": {:.0f}}}", n,
                        s * 1e3, n / s);
  }
  fmt::print(
      "{{\"shape\": \"{}\", \"format\": \"{}\", \"kernels\": \"{}\", \"context\": {}, \"load_s\": "
      "{:.2f}{}\n}}\n",
      o.shape, format.name(), executor.kernels(), o.context, load_s, rows);
  return 0;
}

}  // namespace
}  // namespace bodega::bench

int main(int argc, char** argv) {
  try {
    return bodega::bench::run(bodega::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
