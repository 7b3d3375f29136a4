#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support.h"

namespace bodega::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

struct Refusal {
  std::string members;
  std::string param;
};

class RefusedChat : public testing::TestWithParam<Refusal> {};
TEST_P(RefusedChat, NamesTheField) {
  EXPECT_EQ(refused_param([] { parse_chat(chat_body(GetParam().members), small_model()); }),
            GetParam().param);
}

INSTANTIATE_TEST_SUITE_P(
    Ranges, RefusedChat,
    testing::Values(
        Refusal{R"("max_tokens":0)", "max_tokens"}, Refusal{R"("seed":1.5)", "seed"},
        Refusal{R"("seed":"1")", "seed"}, Refusal{R"("stop":[1])", "stop[0]"},
        Refusal{R"("stop":7)", "stop"}, Refusal{R"("stop":"")", "stop"},
        Refusal{R"("stop":["a",""])", "stop[1]"},
        Refusal{R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])",
                "stop"},
        Refusal{R"("stop_token_ids":[1000])", "stop_token_ids[0]"},
        Refusal{R"("stop_token_ids":[-1])", "stop_token_ids[0]"},
        Refusal{R"("logit_bias":{"x":1})", "logit_bias.x"},
        Refusal{R"("logit_bias":{"1000":1})", "logit_bias.1000"},
        Refusal{R"("logit_bias":{"-1":1})", "logit_bias.-1"},
        Refusal{R"("logit_bias":{"1":101})", "logit_bias.1"},
        Refusal{R"("logit_bias":{"1":"2"})", "logit_bias.1"},
        Refusal{R"("logit_bias":[])", "logit_bias"}, Refusal{R"("priority":"high")", "priority"},
        Refusal{R"("priority":1)", "priority"}, Refusal{R"("logprobs":3)", "logprobs"},
        Refusal{R"("top_logprobs":3)", "top_logprobs"},
        Refusal{R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
        Refusal{R"("min_tokens":5,"max_tokens":4)", "min_tokens"},
        Refusal{R"("stream_options":7)", "stream_options"},
        Refusal{R"("stream_options":{"include_usage":1})", "stream_options.include_usage"},
        Refusal{R"("chat_template_kwargs":[])", "chat_template_kwargs"},
        Refusal{R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs.messages"},
        Refusal{R"("add_generation_prompt":true,"continue_final_message":true)",
                "continue_final_message"},
        Refusal{R"("model":7)", "model"}));

INSTANTIATE_TEST_SUITE_P(LaterWork, RefusedChat,
                         testing::Values(Refusal{R"("functions":[{"name":"f"}])", "functions"},
                                         Refusal{R"("prediction":{"type":"content","content":"x"})",
                                                 "prediction"},
                                         Refusal{R"("modalities":["text","audio"])", "modalities"},
                                         Refusal{R"("store":true)", "store"}));

INSTANTIATE_TEST_SUITE_P(
    Tools, RefusedChat,
    testing::Values(Refusal{R"("tools":{})", "tools"}, Refusal{R"("tools":[7])", "tools[0]"},
                    Refusal{R"("tools":[{"function":{}}])", "tools[0].function.name"},
                    Refusal{R"("tools":[{"function":{"name":"f","parameters":1}}])",
                            "tools[0].function.parameters"},
                    Refusal{R"("tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}])",
                            "tools[1].function.name"},
                    Refusal{R"("tool_choice":"required")", "tool_choice"},
                    Refusal{R"("tool_choice":7)", "tool_choice"},
                    Refusal{R"("parallel_tool_calls":true)", "parallel_tool_calls"}));

INSTANTIATE_TEST_SUITE_P(
    BoundAnswers, RefusedChat,
    testing::Values(Refusal{R"("response_format":{})", "response_format.type"},
                    Refusal{R"("response_format":{"type":"json_schema"})",
                            "response_format.json_schema"},
                    Refusal{R"("response_format":{"type":"json_schema","json_schema":{}})",
                            "response_format.json_schema.schema"},
                    Refusal{R"("guided_regex":"")", "guided_regex"},
                    Refusal{R"("guided_regex":7)", "guided_regex"},
                    Refusal{R"("guided_choice":"a")", "guided_choice"},
                    Refusal{R"("guided_choice":["a",""])", "guided_choice[1]"},
                    Refusal{R"("guided_json":7)", "guided_json"},
                    Refusal{R"("guided_regex":"a","guided_grammar":"b")", "guided_grammar"},
                    Refusal{R"("structured_outputs":{"regex":"a","choice":["b"]})",
                            "structured_outputs.choice"},
                    Refusal{R"("max_reasoning_tokens":-1)", "max_reasoning_tokens"}));

TEST(ParseChat, WhatBindsTheAnswer) {
  const auto bound = [](const char* members) {
    return parse_chat(chat_body(members), small_model()).common.bound.value();
  };
  const BoundAnswer schema = bound(
      R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"b":1,"a":2}}})");
  EXPECT_EQ(schema.source.kind, core::GrammarKind::kJsonSchema);
  EXPECT_EQ(schema.source.text, R"({"b":1,"a":2})");
  EXPECT_EQ(schema.param, "response_format.json_schema.schema");
  EXPECT_EQ(bound(R"("guided_json":"{\"a\":1}")").source.text, R"({"a":1})");
  EXPECT_EQ(bound(R"("guided_choice":["a\"b","c"])").source.text, "start: \"a\\\"b\" | \"c\"\n");
  EXPECT_EQ(bound(R"("structured_outputs":{"regex":"a+"})").source.kind, core::GrammarKind::kRegex);
  EXPECT_EQ(bound(R"("response_format":{"type":"json_object"})").source.text,
            R"({"type":"object"})");
}

TEST(ParseChat, ToolsAsTemplatesSeeThem) {
  const ChatRequest request = parse_chat(
      chat_body(
          R"("tools":[{"function":{"name":"f","description":null}}],"tool_choice":"required")"),
      small_model());
  EXPECT_TRUE(request.tools.must_call());
  EXPECT_EQ(
      to_text(template_context(request, {}).at("tools")),
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}])");
  const ChatRequest none = parse_chat(
      chat_body(R"("tools":[{"function":{"name":"f"}}],"tool_choice":"none")"), small_model());
  EXPECT_FALSE(template_context(none, {}).contains("tools"));
}

// Fault 71: SDKs send null for what their user left out, and empty lists beside it.
TEST(ParseChat, NullEverywhereIsTheDefault) {
  const ChatRequest plain = parse_chat(chat_body(""), small_model());
  const ChatRequest nulls = parse_chat(chat_body(R"(
      "model":null,"temperature":null,"top_p":null,"top_k":null,"min_p":null,"typical_p":null,
      "repetition_penalty":null,"presence_penalty":null,"frequency_penalty":null,"logit_bias":null,
      "seed":null,"n":null,"stop":null,"stop_token_ids":null,"ignore_eos":null,"max_tokens":null,
      "max_completion_tokens":null,"min_tokens":null,"logprobs":null,"top_logprobs":null,"stream":null,
      "stream_options":null,"response_format":null,"tools":null,"tool_choice":null,"user":null,
      "parallel_tool_calls":null,"functions":null,"function_call":null,"prediction":null,"store":null,
      "metadata":null,"modalities":null,"audio":null,"chat_template_kwargs":null,"priority":null,
      "reasoning_effort":null,"add_generation_prompt":null,"continue_final_message":null,
      "guided_regex":null,"service_tier":null,"suffix":null,"structured_outputs":null)"),
                                       small_model());
  EXPECT_EQ(nulls.messages, plain.messages);
  EXPECT_EQ(nulls.common.sampling.temperature, plain.common.sampling.temperature);
  EXPECT_EQ(nulls.common.n, 1);
  EXPECT_FALSE(nulls.common.seed || nulls.common.max_tokens || nulls.common.model);
  EXPECT_TRUE(nulls.add_generation_prompt);
  EXPECT_TRUE(nulls.common.warnings.empty());
}

TEST(ParseChat, WordsThatMeanAbsentAreTaken) {
  const ChatRequest request = parse_chat(chat_body(R"(
      "tools":[],"tool_choice":"auto","functions":[],"function_call":"none","modalities":["text"],
      "response_format":{"type":"text"},"store":false,"service_tier":"flex","prompt_cache_key":"k",
      "safety_identifier":"s","user":"u","metadata":{"a":"b"},"logit_bias":{},"stop":[])"),
                                         small_model());
  EXPECT_TRUE(request.common.warnings.empty());
}

TEST(ParseChat, UnknownFieldsAreNamed) {
  const ChatRequest request = parse_chat(
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"x","mood":1}],"zip":2}],)"
      R"("temprature":1,"stream_options":{"foo":1}})",
      small_model());
  EXPECT_THAT(request.common.warnings,
              ElementsAre(HasSubstr("stream_options.foo"), HasSubstr("messages[0].content[0].mood"),
                          HasSubstr("messages[0].zip"), HasSubstr("temprature")));
}

TEST(ParseChat, StrictRefusesUnknownFields) {
  ModelLimits strict = small_model();
  strict.strict = true;
  EXPECT_EQ(refused_param([&] { parse_chat(chat_body(R"("temprature":1)"), strict); }),
            "temprature");
}

TEST(ParseChat, MessagesAreRequired) {
  EXPECT_EQ(refused_param([] { parse_chat("{}", small_model()); }), "messages");
  EXPECT_EQ(refused_param([] { parse_chat(R"({"messages":[]})", small_model()); }), "messages");
  EXPECT_EQ(refused_param([] { parse_chat(R"({"messages":"x"})", small_model()); }), "messages");
}

TEST(ParseChat, ReadsWhatHasNoRowInTheTable) {
  const GenerationFields common =
      parse_chat(chat_body(R"("seed":18446744073709551615,"stop":["a","b"],"stop_token_ids":[3],
          "logit_bias":{"7":-100,"8":1.5},"priority":"batch","logprobs":true,"top_logprobs":20,
          "stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},
          "model":"m","top_k":-1)"),
                 small_model())
          .common;
  EXPECT_EQ(common.seed, 18446744073709551615U);
  EXPECT_THAT(common.stop.stop, ElementsAre("a", "b"));
  EXPECT_THAT(common.stop.stop_token_ids, ElementsAre(3));
  EXPECT_THAT(common.sampling.logit_bias, ElementsAre(Pair(7, -100.0F), Pair(8, 1.5F)));
  EXPECT_EQ(common.priority, core::Priority::kBatch);
  EXPECT_TRUE(common.sampling.logprobs);
  EXPECT_EQ(common.sampling.top_logprobs, 20);
  EXPECT_TRUE(common.stream && common.include_usage && common.continuous_usage);
  EXPECT_EQ(common.model, "m");
  EXPECT_EQ(common.sampling.top_k, 0);
}

// Fault 51: the newer name wins; without either the room in the context is the budget.
TEST(ParseChat, NewerNameOfTheBudgetWins) {
  const auto budget = [](const char* members) {
    return parse_chat(chat_body(members), small_model()).common.max_tokens;
  };
  EXPECT_EQ(budget(R"("max_completion_tokens":7)"), 7);
  EXPECT_EQ(budget(R"("max_tokens":7)"), 7);
  EXPECT_EQ(budget(R"("max_tokens":9,"max_completion_tokens":7)"), 7);
  EXPECT_EQ(budget(""), std::nullopt);
}

TEST(ResolveMaxTokens, IsTheRoomLeftAtMost) {
  EXPECT_EQ(resolve_max_tokens(std::nullopt, 60, 100), 40);
  EXPECT_EQ(resolve_max_tokens(7, 60, 100), 7);
  EXPECT_EQ(resolve_max_tokens(70, 60, 100), 40);
}

TEST(ResolveMaxTokens, FullContextNamesBothNumbers) {
  try {
    resolve_max_tokens(1, 100, 100);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kContextLengthExceeded);
    EXPECT_THAT(error.what(), HasSubstr("100 tokens"));
  }
}

TEST(TemplateContext, CarriesKwargsAndEffort) {
  const ChatRequest request = parse_chat(
      chat_body(R"("chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"low",)"
                R"("continue_final_message":true)"),
      small_model());
  EXPECT_EQ(
      to_text(template_context(request, {})),
      R"({"messages":[],"add_generation_prompt":false,"reasoning_effort":"low","enable_thinking":false})");
}

TEST(TemplateContext, GuardsWhatATemplateMayPrint) {
  const ChatRequest request =
      parse_chat(chat_body(R"("chat_template_kwargs":{"date":"x","list":["y",1]})"), small_model());
  const Guard guard = [](std::string_view text) { return fmt::format("<{}>", text); };
  EXPECT_THAT(to_text(template_context(request, {}, guard)),
              HasSubstr(R"("date":"<x>","list":["<y>",1])"));
}

class RefusedCompletion : public testing::TestWithParam<Refusal> {};
TEST_P(RefusedCompletion, NamesTheField) {
  EXPECT_EQ(refused_param([] { parse_completion("{" + GetParam().members + "}", small_model()); }),
            GetParam().param);
}

INSTANTIATE_TEST_SUITE_P(Fields, RefusedCompletion,
                         testing::Values(Refusal{"", "prompt"}, Refusal{R"("prompt":[])", "prompt"},
                                         Refusal{R"("prompt":{})", "prompt"},
                                         Refusal{R"("prompt":[1,"a"])", "prompt[1]"},
                                         Refusal{R"("prompt":["a",1])", "prompt[1]"},
                                         Refusal{R"("prompt":[[]])", "prompt[0]"},
                                         Refusal{R"("prompt":[1000])", "prompt[0]"},
                                         Refusal{R"("prompt":[[5,-1]])", "prompt[0][1]"},
                                         Refusal{R"("prompt":[1.5])", "prompt[0]"},
                                         Refusal{R"("prompt":"a","max_tokens":0)", "max_tokens"},
                                         Refusal{R"("prompt":"a","logprobs":true)", "logprobs"},
                                         Refusal{R"("prompt":"a","logprobs":21)", "logprobs"},
                                         Refusal{R"("prompt":"a","suffix":"b")", "suffix"},
                                         Refusal{R"("prompt":"a","best_of":2)", "best_of"},
                                         Refusal{R"("prompt":"a","echo":"yes")", "echo"}));

TEST(ParseCompletion, TakesEveryShapeOfPrompt) {
  const auto prompts = [](const std::string& prompt) {
    return parse_completion("{\"prompt\":" + prompt + "}", small_model()).prompts;
  };
  using Ids = std::vector<core::TokenId>;
  EXPECT_THAT(prompts(R"("a")"), ElementsAre(Prompt("a")));
  EXPECT_THAT(prompts(R"([1,2])"), ElementsAre(Prompt(Ids{1, 2})));
  EXPECT_THAT(prompts(R"(["a","b"])"), ElementsAre(Prompt("a"), Prompt("b")));
  EXPECT_THAT(prompts(R"([[1],"b"])"), ElementsAre(Prompt(Ids{1}), Prompt("b")));
}

TEST(ParseCompletion, NothingNeedsToBeSaidAfterAnEcho) {
  const CompletionRequest request = parse_completion(
      completion_body(R"("echo":true,"max_tokens":0,"logprobs":0)"), small_model());
  EXPECT_TRUE(request.echo && request.common.sampling.logprobs);
  EXPECT_EQ(request.common.max_tokens, 0);
}

}  // namespace
}  // namespace bodega::api
