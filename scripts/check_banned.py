#!/usr/bin/env python3
"""Refuses what one of our compilers lacks or what our rules exclude. Exits 1 with file:line and why.

A line that needs an exception carries `banned-ok: <reason>` in a comment.
"""

import pathlib
import re
import sys

EVERYWHERE = "src tests bench"
# pattern, folders it holds in, why
BANNED = [
    (r"\bstd::format\b|#include <format>", EVERYWHERE, "GCC 12 has no std::format; use fmt"),
    (r"\bstd::expected\b", EVERYWHERE, "GCC 12 has no std::expected"),
    (r"\bstd::(jthread|stop_token|stop_source)\b", EVERYWHERE, "Apple's libc++ lacked it for long"),
    (r"\bstd::move_only_function\b", EVERYWHERE, "GCC 12 has no std::move_only_function"),
    (r"\batomic<\s*std::shared_ptr", EVERYWHERE, "Apple's libc++ lacks it"),
    (r"\bstd::execution::", EVERYWHERE, "Apple's libc++ lacks parallel algorithms"),
    (r"\bco_(await|yield|return)\b", EVERYWHERE, "GCC 12 miscompiles coroutines with captures"),
    (r"\bsetlocale\(|\blocale::global\b", "src", "strtod and printf then read commas"),
    (r"^\s*using namespace (?!std::string_view_literals|std::chrono_literals)", "src", "name it instead"),
    (r"\bstd::regex\b", "src", "slow and recursive on untrusted text"),
    (
        r"\brand\(\)|\bstd::random_device\b",
        "src/engine src/schedule src/cache src/sample src/ops src/cost",
        "policy and sampling repeat: seeds come in from outside",
    ),
    (
        r"\b(steady|system|high_resolution)_clock::now|monotonic_(ns|seconds)\(",
        "src/schedule src/cache",
        "policy knows no clock: time comes in as a number",
    ),
    (r"\bstd::(thread|mutex|atomic)\b", "src/schedule src/cache src/cost", "policy knows no thread"),
    (r"-ffast-math|-Ofast|pragma STDC FP_CONTRACT ON", "src scripts/cmake", "sums keep their order"),
    (r"FetchContent|ExternalProject", "src tests bench rust scripts/cmake", "a build opens no socket"),
]
SUFFIXES = {".h", ".cpp", ".txt", ".cmake", ".metal", ".cu"}


def problems(root):
    for pattern, folders, why in BANNED:
        regex = re.compile(pattern)
        for folder in folders.split():
            for path in sorted((root / folder).rglob("*")):
                if path.suffix not in SUFFIXES or not path.is_file():
                    continue
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                    if regex.search(line.split("//")[0]) and "banned-ok:" not in line:
                        yield f"{path.relative_to(root)}:{number}: {regex.search(line)[0]}: {why}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    found = list(problems(root))
    print("\n".join(found) or "check_banned: nothing banned is used")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
