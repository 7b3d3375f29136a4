#!/usr/bin/env python3
"""DEPENDENCIES.md names exactly what the lists under deps/ and the crates' Cargo.toml take in.

Each table row's "taken as" cell holds names in backquotes: `apt:NAME`, `brew:NAME`, `pypi:NAME`,
`crate:NAME`. A name in a list but not in the table, or the other way round, fails.
"""

import pathlib
import re
import sys


def lines(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if line:
            yield line


def taken(root):
    for path in root.glob("deps/apt*.txt"):
        for line in lines(path):
            yield f"apt:{line.split('|')[0].strip()}"
    for path in root.glob("deps/Brewfile*"):
        for line in lines(path):
            yield f"brew:{line.split(chr(34))[1]}"
    for path in root.glob("deps/requirements*.txt"):
        for line in lines(path):
            yield f"pypi:{re.match(r'[A-Za-z0-9_.-]+', line)[0]}"
    for path in root.glob("rust/*/Cargo.toml"):
        yield from crates(path)


def crates(path):
    section = ""
    for line in lines(path):
        header = re.fullmatch(r"\[(.*)\]", line)
        section = header[1] if header else section
        if header and (match := re.fullmatch(r"(?:\w+-)?dependencies\.([\w-]+)", section)):
            yield f"crate:{match[1]}"
        elif not header and section.endswith("dependencies") and (match := re.match(r"([\w-]+)\s*=", line)):
            yield f"crate:{match[1]}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    text = (root / "DEPENDENCIES.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:apt|brew|pypi|crate):[^`]+)`", text))
    lists = set(taken(root))
    problems = [f"{name}: in a list, not in DEPENDENCIES.md" for name in sorted(lists - named)]
    problems += [f"{name}: in DEPENDENCIES.md, in no list" for name in sorted(named - lists)]
    print("\n".join(problems) or f"check_dependencies: {len(lists)} names, the table and the lists agree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
