#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/fields.h"
#include "api/generation_fields.h"
#include "text/tool_parser.h"

namespace bodega::api {

enum class ToolChoice { kNone, kAuto, kRequired, kNamed };

// tools, tool_choice and parallel_tool_calls, checked.
struct Tools {
  json::array listed;  // as chat templates are given them: {type, function: {name, ...}}
  std::shared_ptr<const text::ToolDeclarations> declared;  // in the same order; null: none
  ToolChoice choice = ToolChoice::kAuto;
  std::string named;  // kNamed
  bool parallel = true;
  std::string schema_member;  // the schema of the third tool: "tools[2]" and this
  bool strict = false;        // one of them wants its arguments bound to its schema

  bool callable() const { return declared != nullptr && choice != ToolChoice::kNone; }
  bool must_call() const { return choice == ToolChoice::kRequired || choice == ToolChoice::kNamed; }
};

Tools read_tools(Fields& fields, const ModelLimits& limits, std::vector<std::string>& warnings);

// Shared with other dialects of the wire, which find names, schemas and choices elsewhere.
class ToolList {
 public:
  // Where the schemas are, for errors: "tools[3]" and this.
  explicit ToolList(std::string schema_member) : schema_member_(std::move(schema_member)) {}

  // `path`: the object that holds the tool's name. Throws where the name is bad or taken.
  void add(const std::string& path, const std::string& name, const std::string& description,
           const json::object* parameters, bool strict = false);
  // Checks that what must be called exists; `path` is the choice's place.
  Tools finish(ToolChoice choice, std::string named, const std::string& path);

 private:
  std::string schema_member_;
  json::array listed_;
  bool strict_ = false;
  std::shared_ptr<text::ToolDeclarations> declared_ = std::make_shared<text::ToolDeclarations>();
};

}  // namespace bodega::api
