#include "cli/simulate/workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <queue>
#include <string>

#include "base/errors.h"
#include "cli/simulate/random.h"

namespace bodega::cli {
namespace {

// How sessions of a mix look. Lengths are geometric means with a spread.
struct Mix {
  std::string_view name;
  int systems;  // how many different shared prompts there are
  double system_tokens;
  double first_tokens;  // of a session's own, before its first turn
  double turn_tokens;   // each later turn adds these
  double output_tokens;
  int least_turns;
  int most_turns;
  double think_s;  // between turns
  double burst;    // times the rate, for a tenth of the time; 1: none
};

constexpr std::array<Mix, 4> kMixes = {{
    {"chat", 8, 300, 60, 60, 150, 1, 10, 40, 1},
    {"agents", 40, 5000, 400, 300, 80, 4, 24, 20, 1},
    {"documents", 2, 200, 6000, 60, 200, 1, 5, 60, 1},
    {"bursts", 4, 400, 80, 60, 60, 1, 2, 20, 10},
}};
constexpr double kBurstPeriodS = 60;
constexpr double kBurstShare = 0.1;

struct Session {
  double next_s;
  std::uint64_t content;
  std::uint64_t system;
  int system_tokens;
  int own_tokens;
  int turns_left;
  bool operator>(const Session& other) const {
    return next_s != other.next_s ? next_s > other.next_s : content > other.content;
  }
};

class MixSource {
 public:
  MixSource(const Mix& mix, double rate, int requests, std::uint64_t seed)
      : mix_(mix), random_(seed), left_(requests) {
    const double turns = (mix.least_turns + mix.most_turns) / 2.0;
    session_gap_s_ = turns / rate;
    next_session_s_ = random_.exponential(session_gap_s_);
    for (int i = 0; i < mix.systems; ++i) {
      system_tokens_.push_back(random_.length(mix.system_tokens, 1.5, 16'000));
    }
  }

  std::optional<SimRequest> next() {
    if (left_-- <= 0) return std::nullopt;
    while (waiting_.empty() || waiting_.top().next_s > next_session_s_) begin_session();
    Session session = waiting_.top();
    waiting_.pop();
    SimRequest request;
    request.arrival_s = session.next_s;
    request.output_tokens = random_.length(mix_.output_tokens, 2, 2000);
    request.prompt = {{session.system, session.system_tokens},
                      {session.content, session.own_tokens}};
    if (--session.turns_left > 0) {
      session.own_tokens += request.output_tokens + random_.length(mix_.turn_tokens, 2, 4000);
      session.next_s += random_.exponential(mix_.think_s);
      waiting_.push(session);
    }
    return request;
  }

 private:
  void begin_session() {
    const auto system = static_cast<std::size_t>(random_.popular(mix_.systems));
    waiting_.push({next_session_s_, ++last_content_ << 8, system + 1, system_tokens_[system],
                   random_.length(mix_.first_tokens, 2, 24'000),
                   random_.between(mix_.least_turns, mix_.most_turns)});
    next_session_s_ += random_.exponential(session_gap_s_) / speed(next_session_s_);
  }
  // Sessions begin faster in a burst and slower between, so that the average is the rate.
  double speed(double now_s) const {
    if (mix_.burst <= 1) return 1;
    const double phase = now_s / kBurstPeriodS - std::floor(now_s / kBurstPeriodS);
    const double quiet = (1 - kBurstShare * mix_.burst * 0.9) / (1 - kBurstShare);
    return phase < kBurstShare ? mix_.burst * 0.9 : std::max(0.1, quiet);
  }

  const Mix& mix_;
  SimRandom random_;
  int left_;
  double session_gap_s_ = 0;
  double next_session_s_ = 0;
  std::uint64_t last_content_ = 0;
  std::vector<int> system_tokens_;
  std::priority_queue<Session, std::vector<Session>, std::greater<>> waiting_;
};

constexpr std::array<std::string_view, kMixes.size()> kNames = {kMixes[0].name, kMixes[1].name,
                                                                kMixes[2].name, kMixes[3].name};

}  // namespace

core::TokenId sim_token(std::uint64_t content, int index) {
  const std::uint64_t mixed = (content + 1) * 0x9E3779B97F4A7C15ULL >> 20;
  return static_cast<core::TokenId>((mixed + static_cast<std::uint64_t>(index) * 7) & 0x7FFFFFFF);
}

std::vector<core::TokenId> sim_tokens(std::span<const SimPiece> pieces) {
  std::vector<core::TokenId> tokens;
  for (const SimPiece& piece : pieces) {
    for (int i = 0; i < piece.tokens; ++i) tokens.push_back(sim_token(piece.content, i));
  }
  return tokens;
}

std::span<const std::string_view> mix_names() { return kNames; }

SimSource make_mix(std::string_view name, double rate, int requests, std::uint64_t seed) {
  const auto mix =
      std::find_if(kMixes.begin(), kMixes.end(), [&](const Mix& m) { return m.name == name; });
  if (mix == kMixes.end()) {
    throw Error(ErrorKind::kConfig, "There is no mix \"" + std::string(name) +
                                        "\": chat, agents, documents or bursts.");
  }
  const auto source = std::make_shared<MixSource>(*mix, rate, requests, seed);
  return [source] { return source->next(); };
}

}  // namespace bodega::cli
