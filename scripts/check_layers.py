#!/usr/bin/env python3
"""Checks the arrows between the folders of src/, and that each outside library has one door.

Two sources are compared with the table below, which is the one of ARCHITECTURE.md: every `#include`
of src/, and the STAGES of every src/*/CMakeLists.txt. Prints each wrong arrow; exits 1 when there is one.
"""

import pathlib
import re
import sys

# folder -> folders it may use; base may be used by all. Transitive only where it says so.
ARROWS = {
    "base": set(),
    "core": set(),
    "cost": {"core"},
    "cache": {"core", "cost"},
    "schedule": {"core", "cache", "cost"},
    "ops": {"core"},
    "model": {"core", "ops"},
    "sample": {"core", "ops"},
    "text": {"core"},
    "engine": {"core", "cost", "cache", "schedule", "ops", "model", "sample", "text"},
    "registry": {"core"},
    "http": set(),
    "api": {"core", "text"},
    "server": {"core", "http", "api", "registry", "engine", "text", "model"},
    "cli": {"core", "server", "engine", "schedule", "cache", "cost", "text", "model", "ops", "http", "api"},
}

# An outside header (a pattern of its path) -> the folders, or single files, that may include it.
DOORS = {
    r"mlx/": {"ops", "model", "sample", "engine"},
    r"boost/(beast|asio)": {"http"},
    r"boost/json": {"api", "server", "registry", "cli", "model", "text"},
    r"textkit\.h": {"text"},
    r"spdlog/": {"base/log.cpp"},
    r"yaml-cpp/": {"server"},
    r"CLI/": {"cli"},
    r"prometheus/": {"server"},
    r"xxh(ash|3)": {"base/hash.cpp"},
    r"curl/": {"registry"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
STAGES = re.compile(r"bodega_stage\(\s*(\w+)(.*?)\)", re.DOTALL)


def include_problems(root):
    src = root / "src"
    for path in sorted(src.rglob("*")):
        if path.suffix not in {".h", ".cpp", ".metal", ".cu"}:
            continue
        name = path.relative_to(src).as_posix()
        folder = name.split("/")[0]
        if folder not in ARROWS:
            yield f"src/{name}: folder '{folder}' is not in the table of scripts/check_layers.py"
            continue
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            for problem in check_include(folder, name, match[1], match[2]):
                yield f"src/{name}:{line}: {problem}"


def check_include(folder, name, quote, header):
    target = header.split("/")[0]
    if quote == '"' and target in ARROWS and target not in {folder, "base"} | ARROWS[folder]:
        yield f"'{folder}' may not use '{target}' ({header})"
    if quote == '"' and header.startswith(".."):
        yield f"include from src/, not by a relative path ({header})"
    for pattern, allowed in DOORS.items():
        if re.match(pattern, header) and not allowed & {folder, name}:
            yield f"{header} belongs behind {', '.join(sorted(allowed))}"


def folder_of(target):
    """A folder may hold several targets: engine, engine_loop."""
    return target if target in ARROWS else target.split("_")[0]


def stage_problems(root):
    for path in sorted(root.glob("src/*/CMakeLists.txt")):
        name, folder = path.relative_to(root).as_posix(), path.parent.name
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
        targets = STAGES.findall(text)
        if folder not in {folder_of(target) for target, _ in targets}:
            yield f"{name}: no bodega_stage({folder} ...) found"
        for target, arguments in targets:
            for stage in stages_of(arguments):
                if folder_of(stage) not in {"base", folder} | ARROWS.get(folder, set()):
                    yield f"{name}: '{target}' may not link '{stage}'"


def stages_of(arguments):
    words = arguments.split()
    if "STAGES" not in words:
        return []
    words = words[words.index("STAGES") + 1 :]
    return words[: next((i for i, word in enumerate(words) if word in {"LIBS", "SOURCES"}), len(words))]


def cycle_problems():
    done, path = set(), []

    def visit(folder):
        if folder in path:
            yield f"ARROWS has a cycle: {' -> '.join(path[path.index(folder) :] + [folder])}"
            return
        if folder in done:
            return
        path.append(folder)
        for target in sorted(ARROWS[folder]):
            yield from visit(target)
        path.pop()
        done.add(folder)

    for folder in ARROWS:
        yield from visit(folder)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    root = root if root.is_dir() else root.parent.parent
    problems = [*cycle_problems(), *include_problems(root), *stage_problems(root)]
    print("\n".join(problems) or "check_layers: every arrow is allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
