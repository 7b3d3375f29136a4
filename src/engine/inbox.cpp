#include "engine/inbox.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace bodega::engine {

bool Inbox::submit(Submission submission) {
  {
    std::lock_guard lock(mutex_);
    if (mail_.closed) return false;
    mail_.submissions.push_back(std::move(submission));
  }
  arrived_.notify_one();
  return true;
}

void Inbox::cancel(core::RequestId id) {
  {
    std::lock_guard lock(mutex_);
    mail_.controls[id].cancel = true;
  }
  arrived_.notify_one();
}

void Inbox::pause(core::RequestId id, bool paused) {
  {
    std::lock_guard lock(mutex_);
    mail_.controls[id].paused = paused;
  }
  arrived_.notify_one();
}

void Inbox::cancel_all() {
  {
    std::lock_guard lock(mutex_);
    mail_.cancel_all = true;
  }
  arrived_.notify_one();
}

void Inbox::wake() {
  {
    std::lock_guard lock(mutex_);
    mail_.woken = true;
  }
  arrived_.notify_one();
}

void Inbox::close() {
  {
    std::lock_guard lock(mutex_);
    mail_.closed = true;
  }
  arrived_.notify_one();
}

bool Inbox::has_mail() const {
  return mail_.closed || mail_.cancel_all || mail_.woken || !mail_.submissions.empty() ||
         !mail_.controls.empty();
}

Inbox::Mail Inbox::take(bool wait, std::optional<double> deadline_s) {
  std::unique_lock lock(mutex_);
  if (wait && deadline_s) {
    const double seconds = std::max(0.0, *deadline_s - monotonic_seconds());
    arrived_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return has_mail(); });
  } else if (wait) {
    arrived_.wait(lock, [this] { return has_mail(); });
  }
  Mail mail = std::exchange(mail_, {});
  mail_.closed = mail.closed;
  return mail;
}

}  // namespace bodega::engine
