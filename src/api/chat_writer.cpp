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
        choices_(choice_count(), Choice(this->info().reasoning)) {}

 private:
  struct Choice {
    explicit Choice(Reasoning reasoning) : splitter(reasoning) {}
    ReasoningSplitter splitter;
    std::string thought;
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
    if (choice.splitter.inside()) add_reasoning_tokens(piece.tokens.size());
    ReasoningSplitter::Piece text = choice.splitter.push(piece.text);
    if (piece.finish) {
      const ReasoningSplitter::Piece rest = choice.splitter.finish();
      text.reasoning += rest.reasoning;
      text.content += rest.content;
    }
    if (!info().stream) {
      choice.thought += text.reasoning;
      choice.text += text.content;
      for (json::value& entry : logprobs) choice.logprobs.push_back(std::move(entry));
      if (piece.finish) choice.finish = finish_word(piece.finish);
      return;
    }
    if (!std::exchange(choice.begun, true)) {
      chunks.push_back(chunk(index, {{"role", "assistant"}, {"content", ""}}));
    }
    if (!text.reasoning.empty()) {
      chunks.push_back(chunk(index, {{"reasoning_content", text.reasoning}}));
    }
    if (!text.content.empty() || !logprobs.empty()) {
      json::object content = chunk(index, {{"content", text.content}});
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
    json::object message{{"role", "assistant"}, {"content", std::move(choice.text)}};
    if (!choice.thought.empty()) message["reasoning_content"] = std::move(choice.thought);
    return {{"index", index},
            {"message", std::move(message)},
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
