#!/bin/sh
# The same set-up as ./setup.sh, then every test. Prints a table of what ran, how long and how it
# ended; exits 1 when anything failed.
set -u

usage() {
  cat <<'TEXT'
Usage: ./test.sh [--quick] [STAGE...]
  --quick   lint, the release build's tests and the HTTP tests only: what to run before a commit
  STAGE     lint unit arm64 crates http scripts counts sanitize threads fuzz tidy (default: all of them)
Environment: BODEGA_JOBS (compiler processes)
TEXT
}

cd "$(dirname "$0")" || exit 1
all='lint scripts unit counts arm64 crates http sanitize threads fuzz tidy'
quick='lint scripts unit http'
stages=''
for argument in "$@"; do
  case $argument in
    --quick) stages=$quick ;;
    --help | -h) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *)
      case " $all " in *" $argument "*) stages="$stages $argument" ;; *) usage >&2; exit 2 ;; esac ;;
  esac
done
stages=${stages:-$all}
jobs=${BODEGA_JOBS:-$(getconf _NPROCESSORS_ONLN)}
python=.venv/bin/python
clang=clang++-19
# The sanitizers see OpenBLAS's and MLX's start-up allocations, which are not ours to free.
export ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1"
export LSAN_OPTIONS="suppressions=$PWD/tests/sanitizers/lsan.supp:print_suppressions=0"
export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1"
export TSAN_OPTIONS="suppressions=$PWD/tests/sanitizers/tsan.supp:halt_on_error=1"

need_clang() { command -v "$clang" >/dev/null || { echo "$clang is missing"; return 1; }; }
configure() {
  [ -f "build/$1/build.ninja" ] || cmake --preset "$1"
}
build() {
  configure "$1" && cmake --build --preset "$@" -j "$jobs"
}

stage_lint() { scripts/lint.sh; }

stage_scripts() { $python -m pytest -q scripts/tests; }

stage_unit() {
  # The crates have a stage of their own.
  build release && ctest --preset release --no-tests=error -E '^textkit_rust$'
}

# Kernels and sampler on 64-bit Arm: cross-compiled, run in an emulator. An Arm machine ran them above.
stage_arm64() {
  case $(uname -m) in aarch64 | arm64) echo "this machine is one: see stage unit"; return 0 ;; esac
  for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
    command -v $tool >/dev/null || { echo "$tool is missing"; return 1; }
  done
  build arm64 && ctest --preset arm64 --no-tests=error || return 1
  # Apple's compiler is a clang.
  need_clang && "$clang" --target=aarch64-linux-gnu -std=c++20 -O3 -Wall -Wextra -Wpedantic -Werror \
    -ffp-contract=off -Isrc -c src/ops/cpu/kernels_neon.cpp -o build/arm64/kernels_neon_clang.o
}

# Instructions of the hot kernels, within 3 % of the committed counts: times are noise here.
stage_counts() {
  build release --target kernels_count && $python scripts/instruction_counts.py
}

stage_crates() {
  for manifest in rust/*/Cargo.toml; do
    CARGO_TARGET_DIR="$PWD/build/cargo" cargo test --release --locked --manifest-path "$manifest" || return 1
  done
}

# The HTTP tests drive the release binary with real clients. No test found is a failure (exit 5).
stage_http() {
  build release --target bodega &&
    BODEGA_BINARY="$PWD/build/release/bodega" $python -m pytest -q tests/http
}

# The default model's own tests take minutes in a release build: unoptimised they would take hours, and
# the tiny models walk the same code.
stage_sanitize() {
  configure dev && ninja -C build/dev -j "$jobs" tests/all &&
    GTEST_FILTER='-*smollm2*:DefaultModel*:LongRun*' ctest --preset dev --no-tests=error -E '^textkit_rust$'
}

# Races live where threads are: base, engine, http and the folders that drive them.
stage_threads() {
  need_clang && configure tsan || return 1
  ran=0
  for folder in base engine http registry server; do
    [ -f "tests/unit/$folder/CMakeLists.txt" ] || continue
    ninja -C build/tsan -j "$jobs" "tests/unit/$folder/all" &&
      ctest --test-dir "build/tsan/tests/unit/$folder" --output-on-failure --no-tests=error || return 1
    ran=$((ran + 1))
  done
  [ $ran -gt 0 ] || { echo "no test was found"; return 1; }
}

# Each fuzzer runs a few seconds from its seeds (tests/fuzz/CMakeLists.txt).
stage_fuzz() {
  need_clang && configure fuzz && ninja -C build/fuzz -j "$jobs" tests/fuzz/all || return 1
  ctest --test-dir build/fuzz/tests/fuzz --output-on-failure --no-tests=error || return 1
  written=$(ls tests/fuzz/*_fuzz.cpp | wc -l)
  ran=$(ctest --test-dir build/fuzz/tests/fuzz -N | sed -n 's/^Total Tests: //p')
  [ "$ran" -ge "$written" ] || { echo "$written fuzzers are written, only $ran ran"; return 1; }
}

# What the last commits touched: all sources take longer than the rest of CI (scripts/tidy.sh).
stage_tidy() { scripts/tidy.sh --changed; }

started=$(date +%s)
CI=${CI:-} ./setup.sh --for-tests || exit 1
echo "set-up: $(($(date +%s) - started)) s"
table=''
failed=0
for stage in $stages; do
  printf '\n==> %s\n' "$stage"
  begun=$(date +%s)
  if "stage_$stage"; then result=passed; else result=FAILED failed=1; fi
  table="$table$(printf '%-10s %-7s %4d s' "$stage" "$result" $(($(date +%s) - begun)))
"
done
printf '\n==> summary (%d s)\n%s' $(($(date +%s) - started)) "$table"
exit $failed
