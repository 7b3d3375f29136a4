#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/options.h"

namespace bodega::cli {

// The rows of an options table as flags with their environment twins. What was given is kept apart
// and applied later, so that it can override a configuration file.
template <class Options>
class OptionFlags {
 public:
  using Field = server::Field<Options>;

  // `skip`: names that the verb spells in its own way.
  void declare(CLI::App& verb, const std::vector<std::string>& skip = {}) {
    for (const Field& field : server::fields<Options>()) {
      if (std::find(skip.begin(), skip.end(), field.name) != skip.end()) continue;
      CLI::Option* option = declare_one(verb, field);
      option->envname(server::environment_name(field.name));
      if (field.hidden) option->group("");
    }
  }

  void apply(Options& options) const {
    for (const auto& [field, text] : given_) server::set_field(options, *field, text);
  }

 private:
  CLI::Option* declare_one(CLI::App& verb, const Field& field) {
    const std::string flag = server::flag_name(field.name);
    const auto keep = [this, &field](std::string text) {
      given_.emplace_back(&field, std::move(text));
    };
    if (std::holds_alternative<bool Options::*>(field.member)) {
      const std::string both = flag + ",!--no-" + flag.substr(2);
      return verb.add_flag_function(
          both, [keep](std::int64_t count) { keep(count > 0 ? "true" : "false"); }, field.help);
    }
    return verb.add_option_function<std::string>(
        flag, [keep](const std::string& text) { keep(text); }, help_of(field));
  }

  static std::string help_of(const Field& field) {
    static const Options kDefaults;
    const std::string value = server::get_field(kDefaults, field);
    std::string help = field.help;
    if (field.choices[0] != '\0') help += std::string(": ") + field.choices;
    if (!value.empty() && !field.hidden) help += " (" + value + ")";
    return help;
  }

  std::vector<std::pair<const Field*, std::string>> given_;
};

}  // namespace bodega::cli
