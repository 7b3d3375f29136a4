#!/bin/sh
# Type-checks the Metal backend's host code against the headers of MLX's Metal wheel, which
# ./setup.sh --for-tests unpacks into .cache/metal. Skipped with exit code 77 where they are missing.
set -eu
cd "$(dirname "$0")/../.."
wheel=${BODEGA_METAL_HEADERS:-.cache/metal/mlx/include}
clang=${CLANG:-clang++-19}
[ -d "$wheel" ] || { echo "no headers in $wheel"; exit 77; }
command -v "$clang" >/dev/null || { echo "$clang is missing"; exit 77; }
exec "$clang" -std=c++20 -fsyntax-only -fblocks -include cmath -Wall -Wextra -Wpedantic -Werror -Isrc \
  -isystem tests/metal_host/apple -isystem "$wheel" -isystem "$wheel/metal_cpp" src/ops/metal/backend.cpp
