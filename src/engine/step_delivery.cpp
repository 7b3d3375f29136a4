#include <utility>

#include "base/log.h"
#include "engine/step_loop.h"

namespace bodega::engine {

void StepLoop::touch(LiveRequest& request) {
  if (std::exchange(request.touched, true)) return;
  touched_.push_back(request.request.id);
}

// Everything that the last step made for one request, in one call of its sink.
void StepLoop::deliver(LiveRequest& request) {
  request.touched = false;
  core::RequestOutput output;
  try {
    for (const auto& choice : request.choices) {
      core::ChoiceOutput out;
      if (tell(request, *choice, out)) output.choices.push_back(std::move(out));
    }
  } catch (const std::exception& error) {
    end_request(request, core::FinishReason::kError, ErrorKind::kInternal, error.what());
    return;
  }
  if (request.request.prompt_logprobs && !std::exchange(request.prompt_logprobs_sent, true)) {
    output.prompt_logprobs = std::move(request.prompt_logprobs);
  }
  output.finished = request.finished();
  if (output.choices.empty() && !output.finished) return;
  if (output.finished) report_finished(request);
  send(request, std::move(output));
}

// Makes text of a choice's new tokens; false when nothing of it may be sent yet.
bool StepLoop::tell(LiveRequest& request, Choice& choice, core::ChoiceOutput& out) {
  if (choice.done) return false;
  push_fresh(request, choice);
  if (choice.ended && !choice.stream.stopped()) {
    choice.stream.finish(choice.ended == core::FinishReason::kLength);
  }
  if (choice.ended || choice.stream.stopped()) settle(choice, out);
  out.choice = choice.index;
  return choice.stream.drain(out, request.request.sampling.logprobs) || choice.done;
}

void StepLoop::push_fresh(LiveRequest& request, Choice& choice) {
  for (core::TokenLogprob& token : std::exchange(choice.fresh, {})) {
    if (choice.stream.stopped()) break;
    const bool last = ++choice.told == choice.output.size();
    choice.stream.push(std::move(token), !(last && choice.ended_by_token));
    ++request.usage.completion_tokens;
  }
}

// The choice is over: says why, and takes its sequence out of the batch.
void StepLoop::settle(Choice& choice, core::ChoiceOutput& out) {
  if (choice.stream.stopped()) {
    choice.done = core::FinishReason::kStop;
    out.stop_reason = choice.stream.stop_string();
    scheduler_.remove(choice.sequence);
  } else {
    choice.done = choice.ended;
    if (choice.ended_by_token) out.stop_reason = codec_.token_text(choice.output.back());
  }
  out.finish = choice.done;
  places_.erase(choice.sequence);
}

// Ends what is left of a request from outside: a failure, a time-out, a shutdown.
void StepLoop::end_request(LiveRequest& request, core::FinishReason reason, ErrorKind kind,
                           const std::string& why) {
  core::RequestOutput output;
  output.finished = true;
  output.error = why;
  output.error_kind = kind;
  for (const auto& choice : request.choices) {
    if (choice->done) continue;
    core::ChoiceOutput out;
    out.choice = choice->index;
    choice->stream.drain(out, request.request.sampling.logprobs);
    out.finish = choice->done = reason;
    output.choices.push_back(std::move(out));
  }
  send(request, std::move(output));
}

void StepLoop::end_all(core::FinishReason reason, const std::string& why) {
  postprocess();
  while (!requests_.empty()) {
    end_request(*requests_.begin()->second, reason, ErrorKind::kUnavailable, why);
  }
}

void StepLoop::fail_all(const std::string& why) {
  Inbox::Mail mail = inbox_.take(false, std::nullopt);
  for (Submission& submission : mail.submissions) start(std::move(submission));
  touched_.clear();
  end_all(core::FinishReason::kError, why);
}

// Calls the sink. A finished request is gone before its client hears of it, so that whoever hears
// may count on its place; one whose sink throws is dropped.
void StepLoop::send(LiveRequest& request, core::RequestOutput output) {
  const core::RequestId id = output.id = request.request.id;
  output.usage = request.usage;
  output.timings = request.timings();
  OutputSink sink = output.finished ? std::move(request.sink) : request.sink;
  if (output.finished) forget(id);
  try {
    sink(std::move(output));
  } catch (const std::exception& error) {
    log_error("a client's sink threw; its request is dropped", {{"reason", error.what()}});
    forget(id);
  }
}

void StepLoop::report_finished(const LiveRequest& request) {
  constexpr double kWeight = 0.2;
  const double service_s = monotonic_seconds() - request.started_s;
  service_s_ += (service_s_ == 0 ? 1.0 : kWeight) * (service_s - service_s_);
  if (!config_.on_finished) return;
  FinishedRequest finished{request.request, {}, {}, request.usage};
  for (const auto& choice : request.choices) {
    const auto end = choice->output.begin() + static_cast<std::ptrdiff_t>(choice->told);
    finished.outputs.emplace_back(choice->output.begin(), end);
    finished.reasons.push_back(choice->done.value_or(core::FinishReason::kError));
  }
  try {
    config_.on_finished(finished);
  } catch (const std::exception& error) {
    log_error("the request log threw", {{"reason", error.what()}});
  }
}

void StepLoop::forget(core::RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  for (const auto& choice : found->second->choices) {
    scheduler_.remove(choice->sequence);
    places_.erase(choice->sequence);
  }
  board_.request_left(found->second->started());
  requests_.erase(found);
}

}  // namespace bodega::engine
