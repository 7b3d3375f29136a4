#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
namespace bodega {

// Bytes of the longest prefix that is whole, valid characters.
std::size_t valid_utf8_prefix(std::string_view bytes);

bool is_valid_utf8(std::string_view bytes);

// True when `bytes` is valid up to a last character that only lacks its end: more may complete it.
bool ends_inside_character(std::string_view bytes);

// Replaces each ill-formed piece by U+FFFD (the maximal-subpart rule of Unicode, as browsers do).
std::string replace_invalid_utf8(std::string_view bytes);

// Appends one code point; `code_point` must be a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

}  // namespace bodega
