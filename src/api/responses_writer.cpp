#include <fmt/format.h>

#include <utility>

#include "api/answer.h"
#include "api/errors.h"
#include "api/json.h"

namespace bodega::api {
namespace {

// POST /v1/responses: one choice, as a list of items.
class ResponsesWriter final : public AnswerWriter {
 public:
  ResponsesWriter(AnswerInfo info, json::object echoed)
      : info_(std::move(info)),
        echoed_(std::move(echoed)),
        parts_(info_.reasoning, info_.make_tool_parser, info_.parallel_calls) {}

  std::string add(int /*prompt*/, const core::RequestOutput& output) override {
    usage_ = output.usage;
    events_.clear();
    if (!std::exchange(begun_, true)) {
      send("response.created", {{"response", response("in_progress")}});
      send("response.in_progress", {{"response", response("in_progress")}});
    }
    for (const core::ChoiceOutput& piece : output.choices) {
      if (parts_.thinking()) reasoning_tokens_ += static_cast<int>(piece.tokens.size());
      take(parts_.push(piece.text));
      if (!piece.finish) continue;
      take(parts_.finish());
      close_item();
      cut_ = piece.finish == core::FinishReason::kLength;
      complete_ = true;
    }
    if (!info_.stream) return complete_ ? to_text(response(status())) : std::string();
    if (complete_) {
      send(cut_ ? "response.incomplete" : "response.completed", {{"response", response(status())}});
    }
    return std::exchange(events_, {});
  }

  bool complete() const override { return complete_; }

  std::string error_event(const Error& error) const override {
    const json::object body = parse_object(error_body(error));
    json::object payload = body.at("error").as_object();
    payload["type"] = "error";
    payload["sequence_number"] = sequence_;
    return "event: error\n" + event_text(to_text(payload));
  }

 private:
  enum class Item { kNone, kThought, kText };

  void send(const char* type, json::object payload) {
    if (!info_.stream) return;
    json::object event{{"type", type}, {"sequence_number", sequence_++}};
    for (auto& member : payload) event[member.key()] = std::move(member.value());
    events_.append("event: ").append(type).append("\n").append(event_text(to_text(event)));
  }

  void take(const AnswerPiece& piece) {
    if (!piece.reasoning.empty()) grow(Item::kThought, piece.reasoning);
    if (!piece.content.empty()) grow(Item::kText, piece.content);
    for (const text::ToolCall& call : piece.calls) add_call(call);
  }

  void grow(Item item, const std::string& text) {
    if (open_ != item) {
      close_item();
      open_item(item);
    }
    text_ += text;
    json::object delta = place();
    delta["delta"] = text;
    if (item == Item::kText) delta["logprobs"] = json::array();
    send(item == Item::kText ? "response.output_text.delta" : "response.reasoning_text.delta",
         std::move(delta));
  }

  void open_item(Item item) {
    open_ = item;
    text_.clear();
    item_id_ = fmt::format("{}_{}_{}", item == Item::kText ? "msg" : "rs", info_.id, items_.size());
    json::object begun = item_object("in_progress");
    begun["content"] = json::array();
    send("response.output_item.added",
         {{"output_index", items_.size()}, {"item", std::move(begun)}});
    json::object added = place();
    added["part"] = part();
    send("response.content_part.added", std::move(added));
  }

  void close_item() {
    if (open_ == Item::kNone) return;
    json::object done = place();
    done["text"] = text_;
    if (open_ == Item::kText) done["logprobs"] = json::array();
    send(open_ == Item::kText ? "response.output_text.done" : "response.reasoning_text.done",
         std::move(done));
    json::object part_done = place();
    part_done["part"] = part();
    send("response.content_part.done", std::move(part_done));
    finish_item(item_object("completed"));
    open_ = Item::kNone;
  }

  void finish_item(json::object item) {
    send("response.output_item.done", {{"output_index", items_.size()}, {"item", item}});
    items_.push_back(std::move(item));
  }

  void add_call(const text::ToolCall& call) {
    close_item();
    item_id_ = fmt::format("fc_{}_{}", info_.id, items_.size());
    json::object item{{"type", "function_call"}, {"id", item_id_},  {"call_id", call.id},
                      {"name", call.name},       {"arguments", ""}, {"status", "in_progress"}};
    send("response.output_item.added", {{"output_index", items_.size()}, {"item", item}});
    send("response.function_call_arguments.delta",
         {{"item_id", item_id_}, {"output_index", items_.size()}, {"delta", call.arguments}});
    send("response.function_call_arguments.done", {{"item_id", item_id_},
                                                   {"output_index", items_.size()},
                                                   {"name", call.name},
                                                   {"arguments", call.arguments}});
    item["arguments"] = call.arguments;
    item["status"] = "completed";
    finish_item(std::move(item));
  }

  json::object place() const {
    return {{"item_id", item_id_}, {"output_index", items_.size()}, {"content_index", 0}};
  }

  json::object part() const {
    if (open_ == Item::kThought) return {{"type", "reasoning_text"}, {"text", text_}};
    return {{"type", "output_text"},
            {"text", text_},
            {"annotations", json::array()},
            {"logprobs", json::array()}};
  }

  json::object item_object(const char* status) const {
    json::object item{{"id", item_id_}};
    if (open_ == Item::kThought) {
      item["type"] = "reasoning";
      item["summary"] = json::array();
    } else {
      item["type"] = "message";
      item["role"] = "assistant";
    }
    item["status"] = status;
    item["content"] = json::array{part()};
    return item;
  }

  const char* status() const { return cut_ ? "incomplete" : "completed"; }

  json::object response(const char* status) const {
    json::object out{{"id", info_.id},
                     {"object", "response"},
                     {"created_at", info_.created},
                     {"status", status},
                     {"model", info_.model},
                     {"error", nullptr},
                     {"incomplete_details", nullptr},
                     {"output", items_},
                     {"previous_response_id", nullptr},
                     {"store", false}};
    if (cut_) out["incomplete_details"] = json::object{{"reason", "max_output_tokens"}};
    for (const auto& member : echoed_) out[member.key()] = member.value();
    out["usage"] = complete_ ? json::value(usage()) : json::value();
    if (complete_ && !info_.warnings.empty()) {
      out["warnings"] = json::array(info_.warnings.begin(), info_.warnings.end());
    }
    return out;
  }

  json::object usage() const {
    return {{"input_tokens", usage_.prompt_tokens},
            {"input_tokens_details", {{"cached_tokens", usage_.cached_tokens}}},
            {"output_tokens", usage_.completion_tokens},
            {"output_tokens_details", {{"reasoning_tokens", reasoning_tokens_}}},
            {"total_tokens", usage_.prompt_tokens + usage_.completion_tokens}};
  }

  const AnswerInfo info_;
  const json::object echoed_;
  AnswerParts parts_;
  core::Usage usage_;
  int reasoning_tokens_ = 0;
  std::string events_;
  int sequence_ = 0;
  Item open_ = Item::kNone;  // the item at hand, its id and text
  std::string item_id_;
  std::string text_;
  json::array items_;  // that are done
  bool begun_ = false;
  bool cut_ = false;
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_responses_writer(AnswerInfo info, json::object echoed) {
  return std::make_unique<ResponsesWriter>(std::move(info), std::move(echoed));
}

}  // namespace bodega::api
