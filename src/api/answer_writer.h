#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/answer.h"
#include "api/usage.h"

namespace bodega::api {

// What chat and completions share: the order of events, the end, usage and warnings. A subclass
// says what a choice looks like. Whole answers are collected and written as one object.
class BaseWriter : public AnswerWriter {
 public:
  BaseWriter(AnswerInfo info, const char* whole_object, const char* chunk_object);

  std::string add(int prompt, const core::RequestOutput& output) final;
  bool complete() const final { return open_choices_ == 0; }

 protected:
  // Called before the first output of a prompt is looked at.
  virtual void begin_prompt(int prompt, const core::RequestOutput& output) = 0;
  // Appends the chunk choices for a piece of a choice (none, one, or more), or collects the piece.
  virtual void add_piece(int index, const core::ChoiceOutput& piece, json::array& chunks) = 0;
  // The choice of a whole answer.
  virtual json::object whole_choice(int index) = 0;

  // For return_token_ids: the ids of a piece go into the last chunk that it made, or are collected.
  void add_token_ids(int index, const core::ChoiceOutput& piece, json::array& chunks);

  void add_reasoning_tokens(std::size_t count) { usage_.add_reasoning_tokens(count); }

  const AnswerInfo& info() const { return info_; }
  int choice_count() const { return info_.prompts * info_.n; }

 private:
  std::string stream_pieces(int prompt, const core::RequestOutput& output);
  void append_chunk(std::string& out, std::string_view choice, const json::object& tail);
  std::string whole_answer();
  json::object envelope(const char* object) const;
  void close_object(json::object& object) const;  // timings and warnings, in the final object only

  const AnswerInfo info_;
  const char* whole_object_;
  const char* chunk_object_;
  std::string chunk_head_;   // "data: " and a chunk up to its choices
  std::vector<bool> begun_;  // by prompt
  int open_choices_;
  std::vector<json::array> token_ids_;  // by choice
  UsageSum usage_;
};

// "stop", "length"; null while the choice goes on.
json::value finish_word(const std::optional<core::FinishReason>& finish);

}  // namespace bodega::api
