#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields.h"
#include "api/generation_fields.h"

namespace bodega::api {

// Reads and checks `messages` and returns them in the one shape that chat templates are given:
// role, content as one string (text parts joined; null or missing is ""), and where present name,
// tool_call_id, reasoning_content and tool_calls, whose arguments are parsed to objects.
json::array read_messages(const json::array& messages, const ModelLimits& limits,
                          std::vector<std::string>& warnings);

// For a template that knows no developer role: the same instruction under the name it knows.
void rename_developer_role(json::array& messages);

// Replaces every string that a client wrote (contents, names, arguments with their keys, but not
// roles and types) by what `guard` makes of it.
using Guard = std::function<std::string(std::string_view)>;
void guard_strings(json::array& messages, const Guard& guard);
// The same for every value of chat_template_kwargs.
void guard_values(json::object& kwargs, const Guard& guard);
// And for tools: names, descriptions and schemas, with their keys.
void guard_list(json::array& values, const Guard& guard);

// For continue_final_message: `mark(messages)` puts a mark that occurs nowhere else at the end of
// the last message and returns it; cut_at_mark returns the rendered text up to it. Both throw
// kInvalidRequest where the last message cannot be continued.
std::string mark_final_message(json::array& messages);
std::string cut_at_mark(std::string rendered, std::string_view mark);

}  // namespace bodega::api
