#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "model/config_folder.h"
#include "model/names.h"
#include "model/tensor_entry.h"

namespace bodega::model {
namespace {

namespace json = boost::json;

// An optional JSON document with its name.
struct Document {
  std::string file;
  json::value value;

  JsonFields fields() const { return JsonFields(value, file); }
};

Document read(const std::optional<std::string>& text, const char* file) {
  return {file, text ? parse_json(*text, file) : json::value(json::object())};
}

void add_ids(const JsonFields& fields, std::set<core::TokenId>& ids) {
  constexpr std::string_view kKey = "eos_token_id";
  const json::value* value = fields.find(kKey);
  if (value == nullptr) return;
  const json::array list = value->is_array() ? value->get_array() : json::array{*value};
  for (const json::value& item : list) {
    const auto id = json_integer(item);
    if (!id || *id < 0 || *id > 0x7FFFFFFF) fields.fail(kKey, "is no token id or list of them.");
    ids.insert(static_cast<core::TokenId>(*id));
  }
}

// A special token as the tokenizer's files write it: a string, or an object with "content".
std::string token_text(const JsonFields& fields, std::string_view key) {
  const json::value* value = fields.find(key);
  if (value == nullptr) return "";
  if (value->is_object()) {
    return JsonFields(*value, fields.file(), std::string(key) + ".").text("content").value_or("");
  }
  return fields.text(key).value_or("");
}

bool is_text(const json::value* value, std::string_view text) {
  return value != nullptr && value->is_string() && std::string_view(value->get_string()) == text;
}

std::optional<core::TokenId> find_in_decoder(const JsonFields& tokenizer_config,
                                             std::string_view text) {
  const auto decoder = tokenizer_config.object("added_tokens_decoder");
  if (!decoder) return std::nullopt;
  for (const auto& [id, token] : decoder->json()) {
    const auto* object = token.if_object();
    if (object == nullptr || !is_text(object->if_contains("content"), text)) continue;
    core::TokenId number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error == std::errc() && end == id.data() + id.size()) return number;
    decoder->fail(id, "is no token id.");
  }
  return std::nullopt;
}

std::optional<core::TokenId> id_of(const json::value* id) {
  const auto number = id == nullptr ? std::nullopt : json_integer(*id);
  if (!number || *number < 0 || *number > 0x7FFFFFFF) return std::nullopt;
  return static_cast<core::TokenId>(*number);
}

// In tokenizer.json: its added tokens first, then the vocabulary, a map or a list of pairs.
std::optional<core::TokenId> find_in_tokenizer(const json::value& tokenizer,
                                               std::string_view text) {
  const auto* root = tokenizer.if_object();
  const json::value* added = root == nullptr ? nullptr : root->if_contains("added_tokens");
  if (added != nullptr && added->is_array()) {
    for (const json::value& token : added->get_array()) {
      const auto* object = token.if_object();
      if (object == nullptr || !is_text(object->if_contains("content"), text)) continue;
      return id_of(object->if_contains("id"));
    }
  }
  const json::value* model = root == nullptr ? nullptr : root->if_contains("model");
  const auto* fields = model == nullptr ? nullptr : model->if_object();
  const json::value* vocabulary = fields == nullptr ? nullptr : fields->if_contains("vocab");
  if (vocabulary == nullptr) return std::nullopt;
  if (const auto* map = vocabulary->if_object()) return id_of(map->if_contains(text));
  if (const auto* list = vocabulary->if_array()) {
    for (std::size_t id = 0; id < list->size(); ++id) {
      const auto* pair = (*list)[id].if_array();
      if (pair != nullptr && is_text(pair->if_contains(0), text)) {
        return static_cast<core::TokenId>(id);
      }
    }
  }
  return std::nullopt;
}

core::TokenId find_token(const JsonFields& tokenizer_config, const FolderTexts& texts,
                         const std::string& text, const std::string& declared_in) {
  if (const auto id = find_in_decoder(tokenizer_config, text)) return *id;
  if (texts.tokenizer) {
    // Megabytes, so only read where added_tokens_decoder does not know the token.
    const json::value tokenizer = parse_json(*texts.tokenizer, "tokenizer.json");
    if (const auto id = find_in_tokenizer(tokenizer, text)) return *id;
  }
  fail_file(declared_in, "the end token '" + printable(text) + "' has no id in the tokenizer.");
}

// One template, or a list of named ones: "default" wins, else the first.
std::string template_text(const JsonFields& fields) {
  const json::value* value = fields.find("chat_template");
  if (value == nullptr) return "";
  if (!value->is_array()) return fields.text("chat_template").value_or("");
  std::optional<std::string> first;
  for (const json::value& item : value->get_array()) {
    const JsonFields named(item, fields.file(), "chat_template[].");
    const std::string text = named.text("template").value_or("");
    if (named.text("name") == "default") return text;
    if (!first) first = text;
  }
  return first.value_or("");
}

}  // namespace

void add_token_facts(const JsonFields& config, const FolderTexts& texts, ModelConfig& result) {
  const Document generation = read(texts.generation_config, "generation_config.json");
  const Document tokenizer = read(texts.tokenizer_config, "tokenizer_config.json");
  const Document special = read(texts.special_tokens_map, "special_tokens_map.json");
  const Document separate = read(texts.chat_template_json, "chat_template.json");
  std::set<core::TokenId> ids;
  add_ids(config, ids);
  add_ids(generation.fields(), ids);
  for (const Document* document : {&tokenizer, &special}) {
    const std::string text = token_text(document->fields(), "eos_token");
    if (!text.empty() && text != result.eos_token) {
      ids.insert(find_token(tokenizer.fields(), texts, text, document->file));
    }
    if (result.eos_token.empty()) result.eos_token = text;
    if (result.bos_token.empty()) result.bos_token = token_text(document->fields(), "bos_token");
  }
  result.end_tokens.assign(ids.begin(), ids.end());
  result.chat_template = texts.chat_template.value_or("");
  if (result.chat_template.empty()) result.chat_template = template_text(separate.fields());
  if (result.chat_template.empty()) result.chat_template = template_text(tokenizer.fields());
  check_config(result, "the end tokens of " + config.file() + " and its neighbours");
}

}  // namespace bodega::model
