#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"

namespace bodega::text {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string render(const std::string& source, const std::string& context = "{}") {
  return ChatTemplate(source,
                      {.bos_token = "<s>", .eos_token = "</s>", .now_unix_s = 1'709'164'800})
      .render(context);
}

std::string load_failure(const std::string& source) {
  try {
    ChatTemplate(source, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kBadModelFile);
    return error.what();
  }
  return "";
}

std::string render_failure(const std::string& source, const std::string& context = "{}") {
  const ChatTemplate chat_template(source, {});
  try {
    chat_template.render(context);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidRequest);
    return error.what();
  }
  return "";
}

TEST(ChatTemplate, TrimsBlocksAndPrintsVariables) {
  EXPECT_EQ(render("{{ bos_token }}\n{% for m in messages %}\n  {% if true %}\n{{ m.role }}: {{ "
                   "m.content }}\n"
                   "  {% endif %}\n{% endfor %}\n{{ eos_token }}\n",
                   R"({"messages": [{"role": "user", "content": "<hi> & 'you'"}]})"),
            "<s>\nuser: <hi> & 'you'\n</s>");
}

TEST(ChatTemplate, NamesTheLineAtLoad) {
  EXPECT_THAT(load_failure("one\ntwo\n{% if %}"), HasSubstr("line 3"));
  EXPECT_THAT(load_failure("{% if x %}\n"), HasSubstr("line"));
  EXPECT_THAT(load_failure("\n{{ messages | frobnicate }}"),
              HasSubstr("line 2: unknown filter \"frobnicate\""));
  EXPECT_THAT(load_failure("\n\n{% if x is not weird %}{% endif %}"),
              HasSubstr("line 3: unknown test \"weird\""));
  EXPECT_THAT(load_failure("\n{{ now() }}"), HasSubstr("line 2: unknown function \"now\""));
  EXPECT_THAT(load_failure("\xFF"), HasSubstr("UTF-8"));
  EXPECT_NE(load_failure(std::string(2 << 20, ' ')), "");
}

TEST(ChatTemplate, TheTemplatesOwnRefusalIsTheMessage) {
  EXPECT_THAT(render_failure("{{ raise_exception('roles must alternate') }}"),
              HasSubstr("refuses these messages: roles must alternate"));
  EXPECT_THAT(render_failure("a\n{{ x.y.z }}"), HasSubstr("line 2"));
  EXPECT_THAT(render_failure("x", "[]"), HasSubstr("JSON object"));
  EXPECT_THAT(render_failure("x", "{"), HasSubstr("JSON object"));
}

TEST(ChatTemplate, ClockCanBeSet) {
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y') }}"), "29 Feb 2024");
}

TEST(ChatTemplate, MentionsRolesAndVariables) {
  const ChatTemplate chat_template(
      "{# developer #}{% if m.role == 'system' or tools %}x{% endif %}", {});
  EXPECT_TRUE(chat_template.mentions("system"));
  EXPECT_TRUE(chat_template.mentions("tools"));
  EXPECT_FALSE(chat_template.mentions("developer"));
  EXPECT_FALSE(chat_template.mentions("sys"));
}

// A template is a program from a model file: it may not hang, eat the memory or overflow the stack.
TEST(ChatTemplate, HostileTemplatesEndInAnError) {
  const std::string loop = "{% for i in range(99999) %}";
  const std::vector<std::string> hostile = {
      loop + loop + loop + "x{% endfor %}{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='x') %}" + loop + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "{% set ns = namespace(s=['x']) %}" + loop +
          "{% set ns.s = ns.s + ns.s %}{{ ns.s|length }}{% endfor %}",
      "{{ 'x' * 999999999999 }}",
      "{{ 'x'.center(999999999999) }}",
      "{{ 'x'.ljust(999999999999) }}",
      "{% set s = 'x' * 1000000 %}{{ s.replace('x', s) }}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
  };
  for (const std::string& source : hostile) {
    EXPECT_THAT(render_failure(source), StartsWith("the chat template cannot render")) << source;
  }
}

// Values that share their parts look exponentially large; no fuel is spent on comparing them.
TEST(ChatTemplate, NothingIsStartedBesideARunawayRender) {
  const ChatTemplate chat_template(
      "{% set ns = namespace(a=['x'], b=['x']) %}{% for i in range(29) %}{% set ns.a = [ns.a, "
      "ns.a] %}"
      "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
      {.max_render_ms = 100});
  for (int attempt = 0; attempt < 3; ++attempt) {
    try {
      chat_template.render("{}");
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("more than 100 ms"));
    }
  }
}

TEST(ChatTemplate, ANamespaceMayHoldItself) {
  EXPECT_EQ(
      render("{% set ns = namespace(n=1) %}{% set ns.me = ns %}{{ ns.me.me.n }}{{ ns.me == ns }}"),
      "1True");
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns.me }}{{ ns }}"),
            "[<namespace>]<namespace>");
  EXPECT_THAT(render_failure("{% set x = {} %}{% set x.y = 1 %}"), HasSubstr("only a namespace"));
}

TEST(ChatTemplate, DeeplyNestedValuesAreFreedSafely) {
  const std::string nest =
      "{% set ns = namespace(v=[]) %}{% for i in range(90000) %}{% set ns.v = [ns.v] %}{% endfor "
      "%}";
  EXPECT_EQ(render(nest + "ok"), "ok");
  EXPECT_THAT(render_failure(nest + "{{ ns.v | tojson }}"), HasSubstr("nested"));
  EXPECT_THAT(load_failure("{{ " + std::string(5000, '[') + std::string(5000, ']') + " }}"),
              HasSubstr("line 1"));
}

}  // namespace
}  // namespace bodega::text
