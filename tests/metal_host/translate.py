#!/usr/bin/env python3
"""Turns a Metal kernel source into C++ for the host shim (shim/metal.h).

Metal is C++ with address spaces and attributes: pointers become checked Ptr<T>, threadgroup arrays
become memory of the emulated threadgroup, attributes go. The kernels keep to a few spellings, and
whatever is left untranslated is an error, so that no pointer escapes the checks:

  device T* / device const T* / threadgroup T*      pointers, also in casts
  threadgroup T name[size];                         arrays, in a kernel's body
  constant T& name [[buffer(i)]]                    parameters; buffers in order, from 0
  constant constexpr T name = ...;                  constants at file scope

Every kernel ends its parameters with the same four positions, which the launcher passes.
"""

import argparse
import pathlib
import re
import sys

POSITIONS = (
    "uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]], "
    "uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]"
)
RULES = [
    (r"#include <metal_\w+>\n", ""),
    (r"using namespace metal;[ ]*\n", ""),
    (r"#pragma METAL [^\n]*\n", ""),
    (r"\bconstant constexpr\b", "constexpr"),
    (r"\bconstant (const )?(\w+)&", r"const \2&"),
    (r"\b(?:device|threadgroup) (const )?(\w+)\*", r"Ptr<\1\2>"),
    (r"\bthreadgroup (\w+) (\w+)\[([^\]]+)\];", r'const Ptr<\1> \2 = threadgroup_array<\1>(\3, "\2");'),
    (r"\bthread (const )?(\w+)&", r"\1\2&"),
    (r"\bthread (const )?(\w+)\*", r"\1\2*"),
    (r"\bkernel void\b", "inline void"),
    (r"\s*\[\[[^\]]*\]\]", ""),
]
LEFT_OVER = re.compile(r"\b(device|threadgroup|constant|thread|kernel|metal)\b|\[\[")


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def check_kernels(text):
    """Yields what is wrong with the parameters of the kernels of `text`."""
    for name, parameters in re.findall(r"\bkernel void (\w+)\(([^{]*)\)\s*\{", text):
        flat = re.sub(r"\s+", " ", parameters).strip()
        if not flat.endswith(POSITIONS):
            yield f"{name}: the parameters do not end with: {POSITIONS}"
        numbers = [int(i) for i in re.findall(r"\[\[buffer\((\d+)\)\]\]", flat)]
        if numbers != list(range(len(numbers))):
            yield f"{name}: buffers are numbered {numbers}"


def translate(text):
    """Returns (C++, problems)."""
    text = without_comments(text)
    problems = list(check_kernels(text))
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    for number, line in enumerate(text.splitlines(), 1):
        if match := LEFT_OVER.search(line):
            problems.append(f"line {number}: '{match[0]}' is not understood: {line.strip()}")
    return text, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    arguments = parser.parse_args()
    text, problems = translate(arguments.source.read_text(encoding="utf-8"))
    if problems:
        print("\n".join(f"{arguments.source}: {problem}" for problem in problems), file=sys.stderr)
        return 1
    before = '#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "-Wunused-parameter"\n'
    after = "#pragma GCC diagnostic pop\n"
    text = f'{before}#line 1 "{arguments.source.name}"\n{text}{after}'
    arguments.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
