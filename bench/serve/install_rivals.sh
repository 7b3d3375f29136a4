#!/bin/sh
# Installs the engines that run.py compares with into a cache of their own, outside the repository.
# llama.cpp is compiled for this very machine (a first run takes 5-15 minutes).
set -eu
cache=${BODEGA_BENCH_CACHE:-$HOME/.cache/bodega-bench}
LLAMA_CPP_PYTHON=0.3.34
MLX_LM=0.32.2
MLX=0.32.4

mkdir -p "$cache"
[ -x "$cache/venv/bin/python" ] || python3 -m venv "$cache/venv"
pip="$cache/venv/bin/python -m pip --disable-pip-version-check"
installed() { $pip list --format=freeze 2>/dev/null | grep -qix "$1"; }

case $(uname -s) in Linux) mlx="mlx[cpu]==$MLX" ;; *) mlx="mlx==$MLX" ;; esac
installed "mlx-lm==$MLX_LM" || $pip install --quiet "mlx-lm==$MLX_LM" "$mlx"
if ! installed "llama_cpp_python==$LLAMA_CPP_PYTHON"; then
  echo "building llama-cpp-python $LLAMA_CPP_PYTHON for this machine; log: $cache/build-llama.log"
  CMAKE_BUILD_PARALLEL_LEVEL=${BODEGA_JOBS:-$(getconf _NPROCESSORS_ONLN)} \
    CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAVA_BUILD=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_TESTS=OFF" \
    $pip install --no-cache-dir --no-binary llama-cpp-python "llama-cpp-python==$LLAMA_CPP_PYTHON" \
    >"$cache/build-llama.log" 2>&1 || { tail -n 20 "$cache/build-llama.log"; exit 1; }
fi
echo "rivals are installed in $cache"
