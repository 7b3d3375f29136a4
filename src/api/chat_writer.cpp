#include <utility>
#include <vector>

#include "api/answer_writer.h"
#include "api/logprobs.h"

namespace bodega::api {
namespace {

class ChatWriter final : public BaseWriter {
 public:
  explicit ChatWriter(AnswerInfo info)
      : BaseWriter(std::move(info), "chat.completion", "chat.completion.chunk"), choices_() {
    for (int i = 0; i < choice_count(); ++i) choices_.emplace_back(this->info());
  }

 private:
  struct Choice {
    explicit Choice(const AnswerInfo& info)
        : parts(info.reasoning, info.make_tool_parser, info.parallel_calls) {}
    AnswerParts parts;
    json::array calls;           // of a whole answer
    std::size_t call_count = 0;  // of a stream
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
    if (choice.parts.thinking()) add_reasoning_tokens(piece.tokens.size());
    AnswerPiece text = choice.parts.push(piece.text);
    if (piece.finish) {
      AnswerPiece rest = choice.parts.finish();
      text.reasoning += rest.reasoning;
      text.content += rest.content;
      for (text::ToolCall& call : rest.calls) text.calls.push_back(std::move(call));
    }
    if (!info().stream) {
      choice.thought += text.reasoning;
      choice.text += text.content;
      for (json::value& entry : logprobs) choice.logprobs.push_back(std::move(entry));
      for (const text::ToolCall& call : text.calls) choice.calls.push_back(whole_call(call));
      if (piece.finish) choice.finish = finish_of(choice, piece);
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
    for (const text::ToolCall& call : text.calls) add_call(index, choice, call, chunks);
    if (!piece.finish) return;
    json::object last = chunk(index, {});
    last["finish_reason"] = finish_of(choice, piece);
    chunks.push_back(std::move(last));
  }

  json::object whole_choice(int index) override {
    Choice& choice = choices_[index];
    json::object message{{"role", "assistant"}, {"content", std::move(choice.text)}};
    if (!choice.calls.empty()) {
      if (message["content"].as_string().empty()) message["content"] = nullptr;
      message["tool_calls"] = std::move(choice.calls);
    }
    if (!choice.thought.empty()) message["reasoning_content"] = choice.thought;
    return {{"index", index},
            {"message", std::move(message)},
            {"logprobs", info().logprobs ? json::value(logprobs_object(std::move(choice.logprobs)))
                                         : json::value(nullptr)},
            {"finish_reason", choice.finish}};
  }

  static json::value finish_of(const Choice& choice, const core::ChoiceOutput& piece) {
    if (choice.parts.called()) return "tool_calls";
    return finish_word(piece.finish);
  }

  static json::object whole_call(const text::ToolCall& call) {
    return {{"id", call.id},
            {"type", "function"},
            {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
  }

  // The first fragment says what is called, the second with what.
  static void add_call(int index, Choice& choice, const text::ToolCall& call, json::array& chunks) {
    const std::size_t place = choice.call_count++;
    json::object head = whole_call(call);
    head["function"].as_object()["arguments"] = "";
    head["index"] = place;
    const json::object rest{{"index", place}, {"function", {{"arguments", call.arguments}}}};
    for (const json::object& fragment : {head, rest}) {
      chunks.push_back(chunk(index, {{"tool_calls", json::array{fragment}}}));
    }
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
