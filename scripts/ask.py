#!/usr/bin/env python3
"""Asks a running server one question with curl and shows the answer as it streams.

usage: ask.py URL QUESTION. Prints the answer, then tokens per second and time to first token as this
client saw them. Exits 1 when there was no complete answer.
"""

import json
import shlex
import subprocess
import sys
import time


def curl_command(url, question):
    body = {
        "messages": [{"role": "user", "content": question}],
        "temperature": 0,
        "max_tokens": 200,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return ["curl", "-sSN", f"{url}/v1/chat/completions", "-H", "Content-Type: application/json"] + [
        "-d",
        json.dumps(body),
    ]


def events(stream):
    """The JSON objects of the `data:` lines, up to [DONE]; other lines are kept for the error text."""
    for line in stream:
        line = line.strip()
        if line == "data: [DONE]":
            yield "done"
        elif line.startswith("data: "):
            yield json.loads(line[len("data: ") :])
        elif line and not line.startswith(":"):
            raise ValueError(line)


def main():
    command = curl_command(sys.argv[1], sys.argv[2])
    print("$", shlex.join(command))
    start = time.monotonic()
    first = last = None
    tokens, done = 0, False
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as curl:
        try:
            for event in events(curl.stdout):
                if event == "done":
                    done = True
                    break
                if "error" in event:
                    raise ValueError(event["error"]["message"])
                for choice in event["choices"]:
                    text = choice["delta"].get("content")
                    if text:
                        last = time.monotonic()
                        first = first or last
                        print(text, end="", flush=True)
                if event.get("usage"):
                    tokens = event["usage"]["completion_tokens"]
        except ValueError as problem:
            print(f"\nask: the server answered: {problem}", file=sys.stderr)
            return 1
    if not done or first is None:
        print("\nask: the stream ended without an answer", file=sys.stderr)
        return 1
    rate = f"{(tokens - 1) / (last - first):.1f} tokens/s" if tokens > 2 and last > first else "-"
    print(f"\n    [{tokens} tokens, {rate}, first token after {(first - start) * 1000:.0f} ms]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
