#include <utility>
#include <vector>

#include "api/answer_writer.h"
#include "api/logprobs.h"

namespace bodega::api {
namespace {

class ChatWriter final : public BaseWriter {
 public:
  explicit ChatWriter(AnswerInfo info)
      : BaseWriter(std::move(info), "chat.completion", "chat.completion.chunk"),
        choices_(choice_count()) {}

 private:
  struct Choice {
    bool begun = false;  // its role has been sent
    std::string text;
    json::array logprobs;
    json::value finish;
  };

  void begin_prompt(int /*prompt*/, const core::RequestOutput& /*output*/) override {}

  void add_piece(int index, const core::ChoiceOutput& piece, json::array& chunks) override {
    Choice& choice = choices_[index];
    json::array logprobs;
    if (info().logprobs) logprobs = chat_logprobs(piece.logprobs, info().token_bytes);
    if (!info().stream) {
      choice.text += piece.text;
      for (json::value& entry : logprobs) choice.logprobs.push_back(std::move(entry));
      if (piece.finish) choice.finish = finish_word(piece.finish);
      return;
    }
    if (!std::exchange(choice.begun, true)) {
      chunks.push_back(chunk(index, {{"role", "assistant"}, {"content", ""}}));
    }
    if (!piece.text.empty() || !logprobs.empty()) {
      json::object content = chunk(index, {{"content", piece.text}});
      if (!logprobs.empty()) content["logprobs"] = logprobs_object(std::move(logprobs));
      chunks.push_back(std::move(content));
    }
    if (!piece.finish) return;
    json::object last = chunk(index, {});
    last["finish_reason"] = finish_word(piece.finish);
    chunks.push_back(std::move(last));
  }

  json::object whole_choice(int index) override {
    Choice& choice = choices_[index];
    return {{"index", index},
            {"message", {{"role", "assistant"}, {"content", std::move(choice.text)}}},
            {"logprobs", info().logprobs ? json::value(logprobs_object(std::move(choice.logprobs)))
                                         : json::value(nullptr)},
            {"finish_reason", choice.finish}};
  }

  static json::object chunk(int index, json::object delta) {
    return {{"index", index},
            {"delta", std::move(delta)},
            {"logprobs", nullptr},
            {"finish_reason", nullptr}};
  }

  static json::object logprobs_object(json::array content) {
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }

  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_chat_writer(AnswerInfo info) {
  return std::make_unique<ChatWriter>(std::move(info));
}

}  // namespace bodega::api
