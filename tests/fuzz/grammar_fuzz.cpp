#include <cstdlib>
#include <memory>
#include <string>

#include "../unit/text/small_tokenizers.h"
#include "base/errors.h"
#include "text/grammar.h"

// A schema, a regular expression or a grammar from a request: whatever it says, it compiles or is
// refused as the client's mistake, and the first tokens that it allows are taken. The first byte
// picks the kind.
namespace {

using namespace bodega;

text::GrammarCompiler& compiler() {
  static const std::shared_ptr<const text::Tokenizer> tokenizer =
      text::Tokenizer::from_gguf(text::byte_level_vocabulary({}, {"<|end|>"}));
  static const std::vector<core::TokenId> ends{256};
  static text::GrammarCompiler compiler(tokenizer, ends);
  return compiler;
}

void walk(core::TokenMatcher& matcher) {
  std::vector<std::uint32_t> words(9);
  for (int step = 0; step < 8; ++step) {
    if (matcher.allowed(words) != core::NextTokens::kListed) std::abort();
    core::TokenId id = 0;
    while (id < 256 && (words[id / 32] >> (id % 32) & 1U) == 0) ++id;
    if (id == 256 || matcher.accept(id)) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  core::GrammarSource source;
  source.kind = static_cast<core::GrammarKind>(data[0] % 3);
  source.text.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    walk(*compiler().constrain(compiler().compile(source), {})->start());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInvalidRequest) std::abort();
  }
  return 0;
}
