#include <utility>
#include <vector>

#include "api/answer_writer.h"
#include "api/logprobs.h"

namespace bodega::api {
namespace {

class CompletionWriter final : public BaseWriter {
 public:
  explicit CompletionWriter(AnswerInfo info)
      : BaseWriter(std::move(info), "text_completion", "text_completion") {
    choices_.reserve(choice_count());
    for (int i = 0; i < choice_count(); ++i) choices_.emplace_back(this->info().token_bytes);
  }

 private:
  struct Choice {
    explicit Choice(const TokenBytes& bytes_of) : logprobs(bytes_of) {}
    std::string text;
    LegacyLogprobs logprobs;
    json::value finish;
  };

  // The echoed prompt is the beginning of each of its choices.
  void begin_prompt(int prompt, const core::RequestOutput& output) override {
    if (info().echo.empty()) return;
    const Echo& echo = info().echo[prompt];
    for (int i = 0; i < info().n; ++i) {
      Choice& choice = choices_[prompt * info().n + i];
      choice.text = echo.text;
      if (!info().logprobs || echo.tokens.empty()) continue;
      choice.logprobs.add_unknown(echo.tokens[0]);
      // Outputs hold an entry a prompt token, or one less where nothing predicted the first.
      const std::size_t skip = output.prompt_logprobs.size() == echo.tokens.size() ? 1 : 0;
      for (std::size_t k = skip; k < output.prompt_logprobs.size(); ++k) {
        choice.logprobs.add(output.prompt_logprobs[k]);
      }
    }
  }

  void add_piece(int index, const core::ChoiceOutput& piece, json::array& chunks) override {
    Choice& choice = choices_[index];
    if (!info().echo_only) {
      choice.text += piece.text;
      if (info().logprobs) {
        for (const core::TokenLogprob& token : piece.logprobs) choice.logprobs.add(token);
      }
    }
    if (piece.finish) choice.finish = info().echo_only ? "length" : finish_word(piece.finish);
    if (!info().stream) return;
    if (choice.text.empty() && choice.logprobs.empty() && !piece.finish) return;
    chunks.push_back(whole_choice(index));
  }

  // What has been collected: all of a whole answer, or what a chunk brings.
  json::object whole_choice(int index) override {
    Choice& choice = choices_[index];
    return {
        {"index", index},
        {"text", std::exchange(choice.text, {})},
        {"logprobs", info().logprobs ? json::value(choice.logprobs.take()) : json::value(nullptr)},
        {"finish_reason", choice.finish}};
  }

  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_completion_writer(AnswerInfo info) {
  return std::make_unique<CompletionWriter>(std::move(info));
}

}  // namespace bodega::api
