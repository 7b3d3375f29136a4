#!/bin/sh
# From a fresh clone to a streamed answer: installs what is missing, builds, starts the server on the
# default model and asks it a question. Safe to run again; a second run takes seconds.
set -eu

usage() {
  cat <<'TEXT'
Usage: ./setup.sh [--check] [--no-serve] [--for-tests] [--yes]
  --check      only print what is missing; exit 1 when something is
  --no-serve   end the server after its first answer
  --for-tests  also install what ./test.sh needs; start no server
  --yes        do not ask before installing system packages
Environment: BODEGA_PORT (44468), BODEGA_JOBS (compiler processes),
  BODEGA_REPO and BODEGA_DIR (what to clone, and where, when run outside a checkout)
TEXT
}

MIN_CARGO_MINOR=88
QUESTION="What is the capital of France?"
port=${BODEGA_PORT:-44468}

if [ -t 1 ]; then bold='\033[1m' plain='\033[0m'; else bold='' plain=''; fi
say() { printf "$bold==>$plain %s\n" "$*"; }
note() { printf '    %s\n' "$*"; }
die() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"
  elif have sudo; then sudo "$@"
  else die "root is needed for: $*"
  fi
}

# The output goes to build/packages.log, and to the terminal only when it failed.
run_quietly() {
  "$@" >build/packages.log 2>&1 </dev/null || { tail -n 30 build/packages.log >&2; die "failed: $*"; }
}

# Asks only where a person can answer; anywhere else the answer is yes.
confirm() {
  [ "$assume_yes" -eq 0 ] && [ -t 1 ] && [ -z "${CI:-}" ] && (: </dev/tty) 2>/dev/null || return 0
  printf '    %s [Y/n] ' "$1"
  read -r answer </dev/tty || answer=n
  case $answer in "" | y | Y | yes) return 0 ;; *) return 1 ;; esac
}

# --- where are we ----------------------------------------------------------------------------------

is_checkout() { [ -f "$1/CMakeLists.txt" ] && grep -q '^project(bodega' "$1/CMakeLists.txt"; }

# Piped from curl there is no checkout around this text: fetch one and go on inside it.
find_checkout() {
  case $0 in */setup.sh | setup.sh) here=$(cd "$(dirname "$0")" && pwd) ;; *) here=$(pwd) ;; esac
  if is_checkout "$here"; then cd "$here"; return; fi
  if [ -z "${BODEGA_REPO:-}" ]; then
    die "this is not inside a checkout of Bodega. Either clone it and run ./setup.sh there, or say \
what to clone: BODEGA_REPO=<git URL> [BODEGA_DIR=<folder>] sh setup.sh"
  fi
  target=${BODEGA_DIR:-$HOME/bodega}
  if is_checkout "$target"; then
    say "Using the checkout in $target"
  else
    have git || die "git is needed to clone $BODEGA_REPO"
    say "Cloning $BODEGA_REPO into $target"
    git clone --depth 1 "$BODEGA_REPO" "$target"
  fi
  cd "$target"
  exec ./setup.sh "$@"
}

# --- system packages -------------------------------------------------------------------------------

list() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

deb_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]
}

# Prints one package of each line of which no alternative is installed. python3 and g++ count as
# there when the command is: a pyenv or a newer compiler is as good.
missing_debs() {
  list "$@" | while IFS= read -r line; do
    found='' candidate=''
    for name in $(echo "$line" | tr '|' ' '); do
      if deb_installed "$name" || { [ "$name" = python3 ] && have python3; }; then found=yes; break; fi
      if [ -z "$candidate" ] && apt-cache show "$name" >/dev/null 2>&1; then candidate=$name; fi
    done
    [ -n "$found" ] || echo "${candidate:-${line%% *}}"
  done
}

missing_brews() {
  list "$@" | sed -n 's/^brew "\(.*\)"/\1/p' | while IFS= read -r name; do
    brew list --versions "$name" >/dev/null 2>&1 || echo "$name"
  done
}

cargo_is_new_enough() {
  have cargo || return 1
  cargo_version=$(cargo --version | sed 's/cargo \([0-9.]*\).*/\1/')
  [ "${cargo_version%%.*}" -gt 1 ] && return 0
  minor=${cargo_version#*.}
  [ "${minor%%.*}" -ge $MIN_CARGO_MINOR ]
}

# Sets `manager` and `missing`.
find_missing() {
  if have apt-get; then
    manager=apt
    missing=$(missing_debs deps/apt.txt)
    if [ "$for_tests" -eq 1 ]; then
      missing="$missing $(missing_debs deps/apt-dev.txt)"
      if [ "$(uname -m)" = x86_64 ]; then missing="$missing $(missing_debs deps/apt-cross.txt)"; fi
    fi
    cargo_is_new_enough || missing="$missing cargo-web rustc-web"
  elif have brew; then
    manager=brew
    missing=$(missing_brews deps/Brewfile)
    if [ "$for_tests" -eq 1 ]; then missing="$missing $(missing_brews deps/Brewfile.dev)"; fi
    if cargo_is_new_enough; then missing=$(echo "$missing" | grep -vx rust || true); fi
  else
    manager=none
    missing=''
  fi
  missing=$(echo "$missing" | tr '\n' ' ' | sed -e 's/^ *//' -e 's/ *$//')
}

install_packages() {
  if [ "$manager" = none ]; then
    note "Neither apt nor Homebrew here: what deps/apt.txt lists has to be installed by hand."
    cargo_is_new_enough || die "cargo 1.$MIN_CARGO_MINOR or newer is needed"
    return
  fi
  if [ -z "$missing" ]; then note "nothing missing"; return; fi
  note "missing: $missing"
  confirm "Install them with $manager?" || die "stopped; nothing was changed"
  # shellcheck disable=SC2086  # a list of words
  if [ "$manager" = apt ]; then
    run_quietly as_root apt-get update
    find_missing  # alternatives are known only after the update
    run_quietly as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends $missing
  else
    run_quietly brew install $missing
  fi
  cargo_is_new_enough || die "cargo is $(cargo --version 2>/dev/null || echo absent) after the \
installation; 1.$MIN_CARGO_MINOR or newer is needed"
}

# --- Python, crates, build -------------------------------------------------------------------------

# Installs a lock file into .venv unless exactly that file was installed before.
install_lock() {
  stamp=.venv/$(basename "$1").stamp
  if [ -f "$stamp" ] && cmp -s "$1" "$stamp"; then note "$1: up to date"; return; fi
  note "$1: installing"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$1"
  cp "$1" "$stamp"
}

setup_python() {
  if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || die "Python 3.10 or newer is needed"
    python3 -m venv --clear .venv
  fi
  install_lock deps/requirements.lock
  if [ "$for_tests" -eq 1 ]; then install_lock deps/requirements-dev.lock; fi
}

# The headers of MLX's Metal wheel, against which the Metal host code is type-checked on Linux.
fetch_metal_headers() {
  [ "$(uname -s)" = Linux ] || return 0
  lock=deps/requirements-metal.lock
  if cmp -s $lock .cache/metal/stamp; then note "$lock: up to date"; return; fi
  note "$lock: fetching"
  rm -rf .cache/metal
  mkdir -p .cache/metal
  .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
    --only-binary=:all: --platform macosx_14_0_arm64 -d .cache/metal -r $lock
  (cd .cache/metal && ../../.venv/bin/python -m zipfile -e mlx_metal-*.whl .)
  rm -rf .cache/metal/*.whl .cache/metal/mlx/lib
  cp $lock .cache/metal/stamp
}

fetch_crates() {
  for manifest in rust/*/Cargo.toml; do
    [ -f "$manifest" ] || continue
    cargo fetch --quiet --locked --manifest-path "$manifest"
    note "$manifest: fetched"
  done
}

# One compiler process a core, but no more than one for each 1.5 GB of memory.
job_count() {
  if [ -n "${BODEGA_JOBS:-}" ]; then echo "$BODEGA_JOBS"; return; fi
  cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
  kilobytes=$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null || true)
  fit=$((${kilobytes:-8000000} / 1500000))
  [ "$fit" -lt 1 ] && fit=1
  if [ "$fit" -lt "$cores" ]; then echo "$fit"; else echo "$cores"; fi
}

build() {
  if [ ! -f build/release/build.ninja ]; then cmake --preset release >build/configure.log 2>&1 || {
    cat build/configure.log
    die "the configuration failed (above)"
  }; fi
  cmake --build --preset release --target bodega -j "$(job_count)"
}

# --- the server ------------------------------------------------------------------------------------

base_url() { echo "http://127.0.0.1:$port"; }
healthy() { curl -fsS -m 2 "$(base_url)/health" >/dev/null 2>&1; }
answers() { curl -sS -m 2 -o /dev/null "$(base_url)/health" 2>/dev/null; }

# Our own server's process id, when it still runs.
server_pid() {
  pid=$(cat build/server.pid 2>/dev/null || true)
  [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && echo "$pid"
}

port_owner() {
  if have lsof; then lsof -nP -iTCP:"$port" -sTCP:LISTEN 2>/dev/null | sed -n '2s/^\([^ ]*\) *\([0-9]*\).*/\1 (process \2)/p'
  elif have ss; then ss -ltnpH "sport = :$port" 2>/dev/null | sed -n 's/.*users:((\(.*\)))/\1/p'
  fi
}

stop_server() {
  pid=$(server_pid) || return 0
  kill "$pid" 2>/dev/null || return 0
  tries=0
  while kill -0 "$pid" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -gt 150 ] && die "the server (process $pid) did not end; see build/server.log"
    sleep 0.1
  done
  rm -f build/server.pid
}

start_server() {
  if pid=$(server_pid) && healthy; then
    if [ build/server.pid -nt "$(binary)" ]; then
      note "already running (process $pid)"
      return
    fi
    note "restarting it: the binary is newer"
    stop_server
  elif answers; then
    owner=$(port_owner)
    die "port $port is taken by ${owner:-another program}. End it, or take another port: \
BODEGA_PORT=44469 ./setup.sh"
  fi
  nohup "$(binary)" serve --port "$port" >build/server.log 2>&1 </dev/null &
  pid=$!
  echo "$pid" >build/server.pid
  tries=0
  until healthy; do
    tries=$((tries + 1))
    if ! kill -0 "$pid" 2>/dev/null || [ $tries -gt 600 ]; then
      tail -n 20 build/server.log >&2
      rm -f build/server.pid
      die "the server did not become healthy (its log is above, and in build/server.log)"
    fi
    sleep 0.1
  done
  note "process $pid, log in build/server.log"
}

binary() { echo build/release/bodega; }

main() {
  check=0 serve=1 for_tests=0 assume_yes=0
  for argument in "$@"; do
    case $argument in
      --check) check=1 ;;
      --no-serve) serve=0 ;;
      --for-tests) for_tests=1 ;;
      --yes | -y) assume_yes=1 ;;
      --help | -h) usage; exit 0 ;;
      *) usage >&2; die "unknown option $argument" ;;
    esac
  done
  find_checkout "$@"
  mkdir -p build

  find_missing
  if [ "$check" -eq 1 ]; then
    if [ -n "$missing" ]; then echo "missing: $missing"; exit 1; fi
    [ "$manager" != none ] || die "neither apt nor Homebrew here; deps/apt.txt lists what is needed"
    echo "nothing is missing"
    exit 0
  fi

  say "System packages"
  install_packages
  say "Python packages (.venv)"
  setup_python
  if [ "$for_tests" -eq 1 ]; then fetch_metal_headers; fi
  say "Rust crates"
  fetch_crates
  say "Building (a first build takes minutes)"
  build
  if [ "$for_tests" -eq 1 ]; then return; fi

  say "Starting the server on $(base_url)"
  start_server
  say "$QUESTION"
  .venv/bin/python scripts/ask.py "$(base_url)" "$QUESTION"
  if [ "$serve" -eq 0 ]; then
    stop_server
    say "The server was ended; start it with: $(binary) serve"
  else
    say "The server is running on $(base_url); end it with: kill $(cat build/server.pid)"
  fi
}

main "$@"
