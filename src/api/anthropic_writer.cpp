#include <utility>
#include <vector>

#include "api/answer.h"
#include "api/errors.h"
#include "api/json.h"

namespace bodega::api {
namespace {

std::string named_event(const json::object& payload) {
  std::string out = "event: ";
  out.append(payload.at("type").as_string());
  return out.append("\n").append(event_text(to_text(payload)));
}

// POST /v1/messages: one choice, as a list of blocks of thought, text and calls.
class AnthropicWriter final : public AnswerWriter {
 public:
  explicit AnthropicWriter(AnswerInfo info)
      : info_(std::move(info)),
        parts_(info_.reasoning, info_.make_tool_parser, info_.parallel_calls) {}

  std::string add(int /*prompt*/, const core::RequestOutput& output) override {
    usage_ = output.usage;
    std::string events;
    if (info_.stream && !std::exchange(begun_, true)) begin(events);
    for (const core::ChoiceOutput& piece : output.choices) {
      take(parts_.push(piece.text), events);
      if (!piece.finish) continue;
      take(parts_.finish(), events);
      close_block(events);
      note_end(piece);
    }
    if (!info_.stream) return complete_ ? to_text(whole()) : std::string();
    if (complete_) end(events);
    return events;
  }

  bool complete() const override { return complete_; }

  std::string error_event(const Error& error) const override {
    json::object payload = parse_object(error_body(error));
    payload["type"] = "error";
    return named_event(payload);
  }

 private:
  void begin(std::string& events) {
    json::object message = envelope();
    message["content"] = json::array();
    message["stop_reason"] = nullptr;
    message["stop_sequence"] = nullptr;
    message["usage"] = usage(0);
    events += named_event({{"type", "message_start"}, {"message", std::move(message)}});
  }

  void take(const AnswerPiece& piece, std::string& events) {
    if (!piece.reasoning.empty()) {
      open_block("thinking", {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}, events);
      grow("thinking", piece.reasoning, events);
    }
    if (!piece.content.empty()) {
      open_block("text", {{"type", "text"}, {"text", ""}}, events);
      grow("text", piece.content, events);
    }
    for (const text::ToolCall& call : piece.calls) add_call(call, events);
  }

  void add_call(const text::ToolCall& call, std::string& events) {
    close_block(events);
    json::object block{
        {"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", json::object()}};
    open_block("tool_use", block, events);
    if (info_.stream) {
      delta({{"type", "input_json_delta"}, {"partial_json", call.arguments}}, events);
    } else {
      blocks_.back().as_object()["input"] = parse_json(call.arguments, "A call's arguments");
    }
    close_block(events);
  }

  // Goes on with the block at hand, or begins one of this type.
  void open_block(const char* type, json::object block, std::string& events) {
    if (open_ == type) return;
    close_block(events);
    open_ = type;
    if (info_.stream) {
      events += named_event({{"type", "content_block_start"},
                             {"index", count_},
                             {"content_block", std::move(block)}});
    } else {
      blocks_.push_back(std::move(block));
    }
    ++count_;
  }

  void grow(const std::string& member, const std::string& text, std::string& events) {
    if (info_.stream) {
      delta({{"type", member + "_delta"}, {member, text}}, events);
      return;
    }
    json::string& whole = blocks_.back().as_object()[member].as_string();
    whole.append(text);
  }

  void delta(json::object delta, std::string& events) {
    events += named_event(
        {{"type", "content_block_delta"}, {"index", count_ - 1}, {"delta", std::move(delta)}});
  }

  void close_block(std::string& events) {
    if (open_.empty()) return;
    open_.clear();
    if (!info_.stream) return;
    events += named_event({{"type", "content_block_stop"}, {"index", count_ - 1}});
  }

  void note_end(const core::ChoiceOutput& piece) {
    complete_ = true;
    stop_sequence_ = nullptr;
    if (parts_.called()) {
      stop_reason_ = "tool_use";
    } else if (piece.finish == core::FinishReason::kLength) {
      stop_reason_ = "max_tokens";
    } else {
      stop_reason_ = "end_turn";
      for (const std::string& stop : info_.stop_strings) {
        if (stop != piece.stop_reason) continue;
        stop_reason_ = "stop_sequence";
        stop_sequence_ = json::value(stop);
      }
    }
  }

  void end(std::string& events) {
    json::object last{{"type", "message_delta"},
                      {"delta", {{"stop_reason", stop_reason_}, {"stop_sequence", stop_sequence_}}},
                      {"usage", usage(usage_.completion_tokens)}};
    add_warnings(last);
    events += named_event(last);
    events += named_event({{"type", "message_stop"}});
  }

  json::object whole() {
    json::object message = envelope();
    message["content"] = std::move(blocks_);
    message["stop_reason"] = stop_reason_;
    message["stop_sequence"] = stop_sequence_;
    message["usage"] = usage(usage_.completion_tokens);
    add_warnings(message);
    return message;
  }

  json::object envelope() const {
    return {{"id", info_.id}, {"type", "message"}, {"role", "assistant"}, {"model", info_.model}};
  }

  // Tokens that were found in the cache are counted apart.
  json::object usage(int output_tokens) const {
    return {{"input_tokens", usage_.prompt_tokens - usage_.cached_tokens},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", usage_.cached_tokens},
            {"output_tokens", output_tokens}};
  }

  void add_warnings(json::object& object) const {
    if (info_.warnings.empty()) return;
    object["warnings"] = json::array(info_.warnings.begin(), info_.warnings.end());
  }

  const AnswerInfo info_;
  AnswerParts parts_;
  core::Usage usage_;
  std::string open_;  // type of the block at hand
  int count_ = 0;     // blocks begun
  json::array blocks_;
  json::value stop_reason_;
  json::value stop_sequence_;
  bool begun_ = false;
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_anthropic_writer(AnswerInfo info) {
  return std::make_unique<AnthropicWriter>(std::move(info));
}

}  // namespace bodega::api
