#!/bin/sh
# Reproduces the served rows of the README's table against a running server, with curl alone: one
# stream, 8 and 32 streams at once. usage: bench/verify.sh [URL] [TOKENS]
set -eu
url=${1:-http://127.0.0.1:44468}
tokens=${2:-128}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

curl -fsS "$url/health" >/dev/null || { echo "no server on $url: ./setup.sh starts one" >&2; exit 1; }

# ignore_eos makes every answer exactly $tokens long, so that the sum is known beforehand.
body() {
  printf '{"messages":[{"role":"user","content":"Story number %s, please."}],"temperature":0,' "$1"
  printf '"max_tokens":%s,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}' "$tokens"
}
calculate() { awk "BEGIN { printf \"%.1f\", $1 }"; }

measure() {
  streams=$1
  number=0
  pids=''
  while [ $number -lt "$streams" ]; do
    number=$((number + 1))
    body "$number" >"$work/body$number"
    curl -fsSN "$url/v1/chat/completions" -H 'Content-Type: application/json' \
      -d "@$work/body$number" -o "$work/out$number" -w '%{time_total}\n' >"$work/time$number" &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid"; done
  seconds=$(sort -n "$work"/time* | tail -n 1) # the streams start together, the slowest ends the run
  got=$(cat "$work"/out* | sed -n 's/.*"completion_tokens":\([0-9]*\).*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }')
  [ "$got" -eq $((streams * tokens)) ] || { echo "expected $((streams * tokens)) tokens, got $got" >&2; exit 1; }
  printf '| %2d streams, prompt and %s tokens each | %8s tokens/s |\n' \
    "$streams" "$tokens" "$(calculate "$got / $seconds")"
  rm -f "$work"/*
}

measure 1 >/dev/null # warms up
for streams in 1 8 32; do measure "$streams"; done
