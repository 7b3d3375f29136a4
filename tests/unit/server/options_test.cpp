#include "server/options.h"

#include <gtest/gtest.h>

#include "base/errors.h"

namespace bodega::server {
namespace {

// A value that differs from the field's default and is allowed.
template <class Options>
std::string other_value(const Options& options, const Field<Options>& field) {
  const std::string choices = field.choices;
  if (!choices.empty()) return choices.substr(choices.rfind(',') + 1);
  const std::string now = get_field(options, field);
  if (now == "true") return "false";
  if (now == "false") return "true";
  const bool number = !now.empty() && now.find_first_not_of("-0123456789") == std::string::npos;
  return number ? std::to_string(std::stoll(now) + 1) : "some text";
}

template <class Options>
void change_every_field(Options& options) {
  for (const auto& field : fields<Options>())
    set_field(options, field, other_value(options, field));
}

template <class Options>
void expect_equal(const Options& a, const Options& b) {
  for (const auto& field : fields<Options>()) {
    EXPECT_EQ(get_field(a, field), get_field(b, field)) << field.name;
  }
}

TEST(Options, EveryFieldReachesTheWorker) {
  WorkerOptions sent;
  change_every_field(sent);
  change_every_field(sent.limits);
  change_every_field(sent.model);
  const WorkerOptions received = parse_worker_arguments(worker_arguments(sent));
  expect_equal(sent, received);
  expect_equal(sent.limits, received.limits);
  expect_equal(sent.model, received.model);
}

TEST(Options, DefaultsNeedNoArguments) { EXPECT_TRUE(worker_arguments({}).empty()); }

TEST(Options, ANegativeOrEmptyValueSurvives) {
  EXPECT_EQ(parse_worker_arguments({"--lifeline-fd", "-1"}).lifeline_fd, -1);
  EXPECT_EQ(parse_worker_arguments({"--model-id", "--odd name"}).model.model_id, "--odd name");
}

void expect_refused(const std::vector<std::string>& arguments, const std::string& part) {
  try {
    parse_worker_arguments(arguments);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Options, RefusalsNameTheField) {
  expect_refused({"--queue-size", "ten"}, "queue_size must be a whole number");
  expect_refused({"--queue-size", "-1"}, "at least 0");
  expect_refused({"--queue-size", "99999999999"}, "queue_size");
  expect_refused({"--kv-mode", "compact"}, "one of: exact");
  expect_refused({"--cb-enable-prefix-cache", "maybe"}, "true or false");
  expect_refused({"--memory-budget", "lots"}, "size");
  expect_refused({"--nope", "1"}, "--nope");
  expect_refused({"--queue-size"}, "lacks a value");
}

TEST(Options, NamesOfFlagsAndEnvironment) {
  EXPECT_EQ(flag_name("cb_max_num_seqs"), "--cb-max-num-seqs");
  EXPECT_EQ(environment_name("cb_max_num_seqs"), "BODEGA_CB_MAX_NUM_SEQS");
}

TEST(Options, ListsAndMaps) {
  ServerOptions options;
  set_field(options, *find_field<ServerOptions>("api_keys"), "one, two,,");
  EXPECT_EQ(options.api_keys, (StringList{"one", "two"}));
  set_field(options, *find_field<ServerOptions>("model_aliases"), "gpt=a/b, claude-*=c");
  EXPECT_EQ(options.model_aliases, (StringMap{{"gpt", "a/b"}, {"claude-*", "c"}}));
  EXPECT_THROW(set_field(options, *find_field<ServerOptions>("model_aliases"), "gpt"), Error);
}

}  // namespace
}  // namespace bodega::server
