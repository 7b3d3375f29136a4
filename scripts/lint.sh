#!/bin/sh
# Every check that needs no build. Runs all of them and fails when one did.
set -u
cd "$(dirname "$0")/.."
bin=.venv/bin
failed=''
check() {
  name=$1
  shift
  "$@" || failed="$failed $name"
}

cpp_files() { git ls-files -co --exclude-standard 'src/*.h' 'src/*.cpp' 'tests/*.h' 'tests/*.cpp' 'bench/*.h' 'bench/*.cpp'; }
format_check() { cpp_files | xargs $bin/clang-format --dry-run --Werror; }
rust_format_check() {
  command -v rustfmt >/dev/null 2>&1 || { echo "rustfmt is not installed: skipped"; return 0; }
  cargo fmt --check --manifest-path rust/textkit/Cargo.toml
}
shell_check() { for script in setup.sh test.sh scripts/*.sh; do sh -n "$script" || return 1; done; }

check layers $bin/python scripts/check_layers.py
check sizes $bin/python scripts/check_sizes.py
check banned $bin/python scripts/check_banned.py
check dependencies $bin/python scripts/check_dependencies.py
check links $bin/python scripts/check_links.py
check python-style $bin/ruff check --quiet .
check python-format $bin/ruff format --quiet --check .
check shell shell_check
check clang-format format_check
[ -f rust/textkit/Cargo.toml ] && check rust-format rust_format_check
[ -z "$failed" ] || { echo "lint: failed:$failed"; exit 1; }
echo "lint: everything passed"
