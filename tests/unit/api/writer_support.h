#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/answer.h"

namespace bodega::api {

inline AnswerInfo info() {
  AnswerInfo info;
  info.id = "id-1";
  info.model = "m";
  info.fingerprint = "fp";
  info.created = 5;
  // 0 "Hi", 1 " you", 2 a whole e-acute, 3 and 4 its two bytes
  info.token_bytes = [](core::TokenId id) {
    static const std::vector<std::string> kTexts{"Hi", " you", "\xC3\xA9", "\xC3", "\xA9"};
    return kTexts.at(id);
  };
  return info;
}

inline AnswerInfo streamed(AnswerInfo info) {
  info.stream = true;
  return info;
}

inline core::ChoiceOutput piece(int choice, std::string text,
                                std::optional<core::FinishReason> finish = std::nullopt) {
  core::ChoiceOutput output;
  output.choice = choice;
  output.text = std::move(text);
  output.finish = finish;
  return output;
}

inline core::RequestOutput outputs(std::vector<core::ChoiceOutput> choices, bool finished = false) {
  core::RequestOutput output;
  output.choices = std::move(choices);
  output.finished = finished;
  output.usage = {10, 4, 3, 0, 0};
  output.timings = {0.5, 2.0, 4.0};
  return output;
}

// The data lines of a stream as objects; checks that [DONE] is the last and nothing else is in
// between.
inline std::vector<json::object> events(std::string_view bytes) {
  std::vector<json::object> out;
  bool done = false;
  while (!bytes.empty()) {
    EXPECT_EQ(bytes.substr(0, 6), "data: ");
    EXPECT_FALSE(done);
    const std::size_t end = bytes.find("\n\n");
    const std::string_view payload = bytes.substr(6, end - 6);
    done = payload == "[DONE]";
    if (!done) out.push_back(parse_object(payload));
    bytes.remove_prefix(end + 2);
  }
  EXPECT_TRUE(done);
  return out;
}

inline std::vector<json::object> stream(std::unique_ptr<AnswerWriter> writer,
                                        const std::vector<core::RequestOutput>& steps) {
  std::string bytes;
  for (const core::RequestOutput& step : steps) bytes += writer->add(0, step);
  EXPECT_TRUE(writer->complete());
  return events(bytes);
}

inline const json::object& choice_of(const json::object& chunk) {
  return chunk.at("choices").as_array().at(0).as_object();
}

}  // namespace bodega::api
