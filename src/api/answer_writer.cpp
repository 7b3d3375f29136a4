#include "api/answer_writer.h"

#include <utility>

namespace bodega::api {

json::value finish_word(const std::optional<core::FinishReason>& finish) {
  if (!finish) return nullptr;
  return *finish == core::FinishReason::kLength ? "length" : "stop";
}

BaseWriter::BaseWriter(AnswerInfo info, const char* whole_object, const char* chunk_object)
    : info_(std::move(info)),
      whole_object_(whole_object),
      chunk_object_(chunk_object),
      begun_(info_.prompts),
      open_choices_(info_.prompts * info_.n),
      token_ids_(open_choices_),
      usage_(info_.prompts) {}

std::string BaseWriter::add(int prompt, const core::RequestOutput& output) {
  usage_.set(prompt, output);
  if (!begun_[prompt]) {
    begun_[prompt] = true;
    begin_prompt(prompt, output);
  }
  if (info_.stream) return stream_pieces(prompt, output);
  json::array none;
  for (const core::ChoiceOutput& piece : output.choices) {
    add_piece(prompt * info_.n + piece.choice, piece, none);
    add_token_ids(prompt * info_.n + piece.choice, piece, none);
    if (piece.finish) --open_choices_;
  }
  return complete() ? whole_answer() : std::string();
}

std::string BaseWriter::stream_pieces(int prompt, const core::RequestOutput& output) {
  std::string out;
  for (const core::ChoiceOutput& piece : output.choices) {
    if (piece.finish) --open_choices_;
    json::array choices;
    add_piece(prompt * info_.n + piece.choice, piece, choices);
    add_token_ids(prompt * info_.n + piece.choice, piece, choices);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      json::object tail;
      if (info_.continuous_usage) {
        tail["usage"] = usage_.usage();
      } else if (info_.include_usage) {
        tail["usage"] = nullptr;
      }
      const bool last = complete() && i + 1 == choices.size();
      if (last && !info_.include_usage) close_object(tail);
      append_chunk(out, to_text(choices[i]), tail);
    }
  }
  if (!complete()) return out;
  if (info_.include_usage) {
    json::object tail{{"usage", usage_.usage()}};
    close_object(tail);
    append_chunk(out, {}, tail);
  }
  return out += event_text("[DONE]");
}

// The head is the same in every chunk of an answer, so it is written only once.
void BaseWriter::append_chunk(std::string& out, std::string_view choice, const json::object& tail) {
  if (chunk_head_.empty()) {
    chunk_head_ = to_text(envelope(chunk_object_));
    chunk_head_.pop_back();
    chunk_head_.insert(0, "data: ").append(",\"choices\":[");
  }
  out.append(chunk_head_).append(choice).append("]");
  if (!tail.empty()) {
    const std::string members = to_text(tail);
    out.append(",").append(members, 1, members.size() - 2);
  }
  out += "}\n\n";
}

std::string BaseWriter::whole_answer() {
  json::object answer = envelope(whole_object_);
  json::array choices;
  for (int index = 0; index < choice_count(); ++index) {
    json::object choice = whole_choice(index);
    if (info_.token_ids) choice["token_ids"] = std::move(token_ids_[index]);
    choices.push_back(std::move(choice));
  }
  answer["choices"] = std::move(choices);
  answer["usage"] = usage_.usage();
  close_object(answer);
  return to_text(answer);
}

void BaseWriter::add_token_ids(int index, const core::ChoiceOutput& piece, json::array& chunks) {
  if (!info_.token_ids) return;
  json::array& held = token_ids_[index];
  if (!info_.echo_only) held.insert(held.end(), piece.tokens.begin(), piece.tokens.end());
  if (chunks.empty()) return;
  chunks.back().as_object()["token_ids"] = std::exchange(held, {});
}

json::object BaseWriter::envelope(const char* object) const {
  json::object out;
  out.reserve(8);
  out["id"] = info_.id;
  out["object"] = object;
  out["created"] = info_.created;
  out["model"] = info_.model;
  out["system_fingerprint"] = info_.fingerprint;
  return out;
}

void BaseWriter::close_object(json::object& object) const {
  object["timings"] = usage_.timings();
  if (info_.warnings.empty()) return;
  json::array warnings;
  for (const std::string& warning : info_.warnings) warnings.push_back(json::value(warning));
  object["warnings"] = std::move(warnings);
}

}  // namespace bodega::api
