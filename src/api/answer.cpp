#include "api/answer.h"

#include <fmt/format.h>

#include <random>

#include "api/errors.h"

namespace bodega::api {

std::optional<Error> failure_of(const core::RequestOutput& output) {
  for (const core::ChoiceOutput& choice : output.choices) {
    if (choice.finish == core::FinishReason::kError) {
      return Error(output.error_kind,
                   output.error.empty() ? "The engine failed on this request." : output.error);
    }
    if (choice.finish == core::FinishReason::kCancelled) {
      return Error(ErrorKind::kUnavailable,
                   "The request was cut because the model is being unloaded.");
    }
  }
  return std::nullopt;
}

std::string AnswerWriter::error_event(const Error& error) const {
  return event_text(error_body(error));
}

std::string event_text(std::string_view payload) {
  std::string out;
  out.reserve(payload.size() + 8);
  return out.append("data: ").append(payload).append("\n\n");
}

std::string new_answer_id(std::string_view prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return fmt::format("{}-{:016x}{:08x}", prefix, random(), random() & 0xFFFFFFFF);
}

}  // namespace bodega::api
