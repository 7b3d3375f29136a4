#include "api/logprobs.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/utf8.h"

namespace bodega::api {
namespace {

constexpr double kFloor = -9999;

json::object chat_entry(core::TokenId id, float logprob, const TokenBytes& bytes_of) {
  const std::string bytes = bytes_of(id);
  json::array numbers;
  numbers.reserve(bytes.size());
  for (const char c : bytes) numbers.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  return {{"token", token_text(bytes)},
          {"logprob", finite_logprob(logprob)},
          {"bytes", std::move(numbers)}};
}

}  // namespace

std::string token_text(std::string_view bytes) {
  if (is_valid_utf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char c : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

double finite_logprob(float value) {
  return std::isfinite(value) && value > kFloor ? widen(value) : kFloor;
}

json::array chat_logprobs(std::span<const core::TokenLogprob> tokens, const TokenBytes& bytes_of) {
  json::array content;
  content.reserve(tokens.size());
  for (const core::TokenLogprob& token : tokens) {
    json::object entry = chat_entry(token.id, token.logprob, bytes_of);
    json::array top;
    for (const auto& [id, logprob] : token.top) top.push_back(chat_entry(id, logprob, bytes_of));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return content;
}

void LegacyLogprobs::add_text(core::TokenId id) {
  const std::string bytes = bytes_of_(id);
  tokens_.push_back(json::value(token_text(bytes)));
  offsets_.push_back(offset_);
  offset_ += count_characters(bytes);
}

void LegacyLogprobs::add(const core::TokenLogprob& token) {
  add_text(token.id);
  values_.push_back(finite_logprob(token.logprob));
  json::object top;
  for (const auto& [id, logprob] : token.top) {
    top[token_text(bytes_of_(id))] = finite_logprob(logprob);
  }
  tops_.push_back(std::move(top));
}

void LegacyLogprobs::add_unknown(core::TokenId id) {
  add_text(id);
  values_.push_back(nullptr);
  tops_.push_back(nullptr);
}

json::object LegacyLogprobs::take() {
  return {{"tokens", std::exchange(tokens_, {})},
          {"token_logprobs", std::exchange(values_, {})},
          {"top_logprobs", std::exchange(tops_, {})},
          {"text_offset", std::exchange(offsets_, {})}};
}

}  // namespace bodega::api
