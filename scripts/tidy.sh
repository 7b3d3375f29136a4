#!/bin/sh
# Runs clang-tidy (its checks are errors) on the files given, or on every source of src/.
# usage: scripts/tidy.sh [FILE...]; needs build/release configured.
set -eu
cd "$(dirname "$0")/.."
tidy=${CLANG_TIDY:-$(command -v clang-tidy-19 || command -v clang-tidy)}
[ -f build/release/compile_commands.json ] || cmake --preset release >/dev/null
if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files -co --exclude-standard 'src/*.cpp'; fi |
  xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 4 "$tidy" -p build/release --quiet
