#include <gtest/gtest.h>

#include "base/errors.h"
#include "golden_files.h"
#include "text/chat_template.h"

// What transformers prints (scripts/golden/text_templates.py), byte for byte; where it fails, we
// fail.
namespace bodega::text {
namespace {

const json::value& golden() {
  static const json::value value = json::parse(read_golden("templates.json"));
  return value;
}

TemplateOptions options() {
  return {.bos_token = golden().at("bos_token").as_string().c_str(),
          .eos_token = golden().at("eos_token").as_string().c_str(),
          .now_unix_s = golden().at("now_unix_s").as_int64()};
}

std::string rendered(const std::string& source, const json::value& context) {
  try {
    return ChatTemplate(source, options()).render(json::serialize(context));
  } catch (const Error& error) {
    return std::string("ERROR ") + error.what();
  }
}

void expect_as_transformers(const std::string& source, const json::value& context,
                            const json::value& expected, const std::string& name) {
  const std::string actual = rendered(source, context);
  if (expected.is_null()) {
    EXPECT_TRUE(actual.starts_with("ERROR ")) << name << " printed\n" << actual;
  } else {
    EXPECT_EQ(actual, std::string_view(expected.as_string())) << name;
  }
}

TEST(TemplateGolden, RealShapesInEveryConversation) {
  for (const auto& [shape, texts] : golden().at("rendered").as_object()) {
    const std::string source = read_golden("templates/" + std::string(shape) + ".jinja");
    ASSERT_FALSE(source.empty());
    for (const auto& [conversation, text] : texts.as_object()) {
      expect_as_transformers(source, golden().at("conversations").at(conversation), text,
                             std::string(shape) + ", " + std::string(conversation));
    }
  }
}

TEST(TemplateGolden, Constructs) {
  for (const json::value& snippet : golden().at("constructs").as_array()) {
    const std::string source = snippet.at("source").as_string().c_str();
    expect_as_transformers(source, golden().at("construct_context"), snippet.at("text"), source);
  }
}

}  // namespace
}  // namespace bodega::text
