#!/usr/bin/env python3
"""Keeps files and functions readable: fails at 600 lines a file (800 for kernels), 80 non-blank lines
a function, nesting over 4. Files over 400 lines and functions over 40 are only listed with --notes.
"""

import argparse
import pathlib
import sys

import lizard

FILE_LINES, KERNEL_LINES, FUNCTION_LINES, NESTING = 600, 800, 80, 4
NOTE_FILE_LINES, NOTE_FUNCTION_LINES = 400, 40
FOLDERS = ("src", "rust", "tests", "bench", "scripts", "web")
SUFFIXES = {".h", ".cpp", ".rs", ".py", ".js"}
SKIPPED = ("rust/textkit/target", "web/vendor")


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and path.is_file() and not name.startswith(SKIPPED):
                yield path, name


def is_kernel(name):
    return name.startswith(("src/ops/cpu/", "src/ops/metal/", "src/ops/cuda/"))


def measure(root):
    """Yields (problem?, sentence) for everything over a limit or a note's limit."""
    for path, name in sources(root):
        extensions = lizard.get_extensions(["ns"])  # fresh ones: they carry their nesting into the next file
        lines = path.read_text(encoding="utf-8").count("\n")
        limit = KERNEL_LINES if is_kernel(name) else FILE_LINES
        if lines > NOTE_FILE_LINES:
            yield lines > limit, f"{name}: {lines} lines (limit {limit})"
        for function in lizard.FileAnalyzer(extensions)(str(path)).function_list:
            where = f"{name}:{function.start_line}: {function.name}"
            if function.nloc > NOTE_FUNCTION_LINES:
                yield function.nloc > FUNCTION_LINES, f"{where}: {function.nloc} lines (limit 80)"
            # lizard counts Python's and Rust's nesting wrongly; braces of C++ it gets right.
            if path.suffix in {".h", ".cpp"} and function.max_nested_structures > NESTING:
                yield True, f"{where}: nesting {function.max_nested_structures} (limit {NESTING})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", action="store_true", help="also list what is only large")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    found = list(measure(root))
    failed = [sentence for problem, sentence in found if problem]
    if arguments.notes:
        print("\n".join(f"note: {sentence}" for problem, sentence in found if not problem))
    print("\n".join(failed) or "check_sizes: every file and function is within its limit")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
