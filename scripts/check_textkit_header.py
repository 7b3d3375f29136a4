#!/usr/bin/env python3
"""Compares rust/textkit/include/textkit.h with the extern "C" functions and repr(C) structs of src/ffi.rs.

Exits 1 and prints both forms of whatever differs: names, order and types of parameters and fields, results.
"""

import pathlib
import re
import sys

CRATE = pathlib.Path(__file__).resolve().parent.parent / "rust/textkit"
C_TYPES = {
    "uint8_t": "u8",
    "int32_t": "i32",
    "uint32_t": "u32",
    "int64_t": "i64",
    "size_t": "usize",
    "float": "f32",
    "bool": "bool",
    "void": "()",
}


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def c_type(text):
    """`const textkit_view*` as Rust writes it."""
    words = text.replace("*", " * ").split()
    constant = "const" in words
    words = [word for word in words if word not in ("const", "struct")]
    rust = C_TYPES.get(words[0], words[0])
    for _ in words[1:]:
        rust = f"{'*const' if constant else '*mut'} {rust}"
        constant = False
    return rust


def c_pair(text):
    """(name, type) of a parameter or field."""
    declaration, name = re.match(r"(.*?)(\w+)$", text.strip(), flags=re.S).groups()
    return name, c_type(declaration)


def from_header(text):
    text = without_comments(text)
    found = {}
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, flags=re.S):
        found[f"struct {name}"] = [c_pair(field) for field in body.split(";") if field.strip()]
    for result, name, parameters in re.findall(r"^([\w *]+?)\b(textkit_\w+)\(([^)]*)\);", text, flags=re.M):
        pairs = [c_pair(p) for p in parameters.split(",") if p.strip() not in ("", "void")]
        found[f"fn {name}"] = (pairs, c_type(result))
    return found


def rust_pairs(text):
    parts = [part.strip().removeprefix("pub ") for part in text.split(",")]
    return [tuple(" ".join(half.split()) for half in part.split(":", 1)) for part in parts if part]


def from_rust(text):
    text = without_comments(text)
    found = {}
    for attributes, name, body in re.findall(
        r"((?:#\[[^\n]*\]\s*)+)pub struct (\w+) \{(.*?)\n\}", text, flags=re.S
    ):
        if "repr(C)" in attributes:
            found[f"struct {name}"] = rust_pairs(body)
    functions = re.findall(
        r'#\[no_mangle\]\s*pub unsafe extern "C" fn (\w+)\((.*?)\)\s*(?:->\s*([^{]+?))?\s*\{',
        text,
        flags=re.S,
    )
    for name, parameters, result in functions:
        found[f"fn {name}"] = (rust_pairs(parameters), " ".join(result.split()) or "()")
    return found


def main():
    header = from_header((CRATE / "include/textkit.h").read_text())
    rust = from_rust((CRATE / "src/ffi.rs").read_text())
    if not header or not rust:
        print("check_textkit_header: nothing to compare, the files changed their form")
        return 1
    differ = [name for name in sorted(header.keys() | rust.keys()) if header.get(name) != rust.get(name)]
    for name in differ:
        print(f"{name}\n  textkit.h: {header.get(name)}\n  ffi.rs:    {rust.get(name)}")
    if not differ:
        print(f"check_textkit_header: {len(header)} declarations agree")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
