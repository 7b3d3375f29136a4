#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/request.h"
#include "core/token_constraint.h"
#include "engine/engine.h"

namespace bodega::engine {

struct Submission {
  core::Request request;  // with its id
  OutputSink sink;
  double submitted_s = 0;                                       // monotonic clock
  std::vector<std::unique_ptr<core::TokenMatcher>> matchers{};  // [n] of a bound request
};

// What clients want changed about a request that is queued or running.
struct Control {
  bool cancel = false;
  std::optional<bool> paused;
};

// Messages from any thread to the engine's. Bounded by construction: submit() is called only for a
// place in the queue that was reserved before, and controls of one request merge into one.
class Inbox {
 public:
  struct Mail {
    std::vector<Submission> submissions;          // in order of arrival
    std::map<core::RequestId, Control> controls;  // apply after the submissions
    bool cancel_all = false;
    bool woken = false;
    bool closed = false;
  };

  bool submit(Submission submission);  // false when closed
  void cancel(core::RequestId id);
  void pause(core::RequestId id, bool paused);
  void cancel_all();
  void wake();  // something that is no message has happened
  void close();

  // Everything that came since the last call. With `wait` it first waits for something to come, or
  // until `deadline_s` on the monotonic clock.
  Mail take(bool wait, std::optional<double> deadline_s);

 private:
  bool has_mail() const;

  std::mutex mutex_;  // held only to move messages in and out
  std::condition_variable arrived_;
  Mail mail_;
};

}  // namespace bodega::engine
