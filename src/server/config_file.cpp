#include "server/config_file.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "base/errors.h"

namespace bodega::server {
namespace {

class ConfigReader {
 public:
  ConfigReader(std::string name, ServeOptions& options)
      : name_(std::move(name)), options_(options) {}

  void read(const YAML::Node& root) const {
    if (root.IsNull()) return;  // an empty file
    for_each(root, "The file", [&](const std::string& key, const YAML::Node& value) {
      if (key == "server") {
        read_server(value);
      } else if (key == "models") {
        read_models(value);
      } else {
        return false;
      }
      return true;
    });
  }

 private:
  using OnKey = std::function<bool(const std::string& key, const YAML::Node& value)>;

  [[noreturn]] void refuse(const YAML::Node& node, const std::string& why) const {
    throw Error(ErrorKind::kConfig,
                name_ + ":" + std::to_string(node.Mark().line + 1) + ": " + why);
  }

  // `on_key` returns false for a key that it does not know.
  void for_each(const YAML::Node& map, const std::string& what, const OnKey& on_key) const {
    if (!map.IsMap()) refuse(map, what + " must be a mapping of names to values.");
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) refuse(entry.first, "A key must be a word.");
      const std::string& key = entry.first.Scalar();
      if (!seen.insert(key).second) refuse(entry.first, "The key \"" + key + "\" is there twice.");
      if (!on_key(key, entry.second)) refuse(entry.first, "Unknown key \"" + key + "\".");
    }
  }

  void read_server(const YAML::Node& node) const {
    for_each(node, "server", [&](const std::string& key, const YAML::Node& value) {
      if (key != "limits") return set(options_.server, key, value);
      for_each(value, "limits", [&](const std::string& limit, const YAML::Node& bound) {
        return set(options_.limits, limit, bound);
      });
      return true;
    });
  }

  void read_models(const YAML::Node& node) const {
    if (!node.IsSequence()) refuse(node, "models must be a list.");
    for (const YAML::Node& model : node) {
      options_.models.emplace_back();
      for_each(model, "A model", [&](const std::string& key, const YAML::Node& value) {
        return set(options_.models.back(), key, value);
      });
    }
  }

  template <class Options>
  bool set(Options& options, const std::string& key, const YAML::Node& value) const {
    const Field<Options>* const field = find_field<Options>(key);
    if (field == nullptr || field->hidden) return false;
    if (value.IsNull()) return true;  // "key:" alone leaves the default
    try {
      set_value(options, *field, value);
    } catch (const Error& error) {
      refuse(value, error.what());
    }
    return true;
  }

  template <class Options>
  void set_value(Options& options, const Field<Options>& field, const YAML::Node& value) const {
    if (const auto* const list = std::get_if<StringList Options::*>(&field.member)) {
      options.*(*list) = read_list(value, field.name);
    } else if (const auto* const map = std::get_if<StringMap Options::*>(&field.member)) {
      options.*(*map) = read_map(value, field.name);
    } else if (value.IsScalar()) {
      set_field(options, field, value.Scalar());
    } else {
      refuse(value, std::string(field.name) + " must be one value.");
    }
  }

  StringList read_list(const YAML::Node& node, const std::string& name) const {
    if (!node.IsSequence()) refuse(node, name + " must be a list.");
    StringList out;
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) refuse(item, name + " must be a list of words.");
      out.push_back(item.Scalar());
    }
    return out;
  }

  StringMap read_map(const YAML::Node& node, const std::string& name) const {
    StringMap out;
    for_each(node, name, [&](const std::string& key, const YAML::Node& value) {
      if (!value.IsScalar()) refuse(value, name + " must map words to words.");
      out[key] = value.Scalar();
      return true;
    });
    return out;
  }

  const std::string name_;
  ServeOptions& options_;
};

}  // namespace

void load_config_text(const std::string& text, const std::string& name, ServeOptions& options) {
  try {
    ConfigReader(name, options).read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    throw Error(ErrorKind::kConfig,
                name + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg + ".");
  }
}

void load_config_file(const std::string& path, ServeOptions& options) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || std::filesystem::is_directory(path))
    throw Error(ErrorKind::kConfig, "The config file " + path + " cannot be read.");
  load_config_text(text.str(), path, options);
}

}  // namespace bodega::server
