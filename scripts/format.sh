#!/bin/sh
# Formats every C++, Python and Rust file in place.
set -eu
cd "$(dirname "$0")/.."
git ls-files -co --exclude-standard 'src/*.h' 'src/*.cpp' 'tests/*.h' 'tests/*.cpp' 'bench/*.h' 'bench/*.cpp' |
  xargs .venv/bin/clang-format -i
.venv/bin/ruff check --quiet --fix . || true
.venv/bin/ruff format --quiet .
if command -v rustfmt >/dev/null 2>&1; then cargo fmt --manifest-path rust/textkit/Cargo.toml; fi
