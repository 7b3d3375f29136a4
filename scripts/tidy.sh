#!/bin/sh
# Runs clang-tidy (its checks are errors) on the files given, on the sources that the last commits
# touched (--changed: ten commits and what is not committed), or on every source of src/.
# Needs build/release configured.
set -eu
cd "$(dirname "$0")/.."
tidy=${CLANG_TIDY:-$(command -v clang-tidy-19 || command -v clang-tidy)}
[ -f build/release/compile_commands.json ] || cmake --preset release >/dev/null

files() {
  case ${1:-} in
    '') git ls-files -co --exclude-standard 'src/*.cpp' ;;
    --changed)
      if since=$(git rev-parse -q --verify HEAD~10); then git diff --name-only --diff-filter=d "$since" -- 'src/*.cpp'
      else git ls-files 'src/*.cpp'
      fi
      ;;
    *) printf '%s\n' "$@" ;;
  esac
}
# Files of another platform have no compile command.
files "$@" | while IFS= read -r file; do
  if grep -q "/$file\"" build/release/compile_commands.json; then echo "$file"; fi
done >build/tidy-files
echo "clang-tidy: $(wc -l <build/tidy-files) files"
xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 2 "$tidy" -p build/release --quiet <build/tidy-files
