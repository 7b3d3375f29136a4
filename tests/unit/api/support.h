#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/chat_request.h"
#include "api/completion_request.h"
#include "base/errors.h"

namespace bodega::api {

inline ModelLimits small_model() {
  return {.context_length = 100, .vocab_size = 1000, .strict = false};
}

// {"messages": [one user message], <members>}
inline std::string chat_body(const std::string& members) {
  const std::string comma = members.empty() ? "" : ",";
  return R"({"messages":[{"role":"user","content":"Hi"}])" + comma + members + "}";
}

inline std::string completion_body(const std::string& members) {
  const std::string comma = members.empty() ? "" : ",";
  return R"({"prompt":"Hi")" + comma + members + "}";
}

// The param of the 400 that `call` throws; fails the test when it throws nothing.
template <typename Call>
std::string refused_param(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidRequest) << error.what();
    EXPECT_NE(std::string(error.what()).find(error.param()), std::string::npos) << error.what();
    return error.param();
  }
  ADD_FAILURE() << "was accepted";
  return {};
}

}  // namespace bodega::api
