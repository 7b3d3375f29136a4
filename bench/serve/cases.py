"""What every engine is asked to do, and how one measurement is taken. Imported by each driver."""

import argparse
import json
import time

CONTEXT = 256  # tokens each sequence holds before decoding is timed
STEPS = 48  # decode steps that are timed
BATCHES = (1, 8, 32)
PROMPTS = (512, 4096)


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", required=True, help="the GGUF file")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument(
        "--repeat",
        type=int,
        default=2,
        help="timings of each case after a warm-up; the best counts; 0: the warm-up",
    )
    parser.add_argument("--skip", default="", help="cases to leave out, e.g. prefill-4096,decode-32")
    return parser.parse_args()


def prompt(length, seed=1):
    """Token ids between 1000 and 40000: ordinary words of any of our vocabularies."""
    state, ids = seed * 2654435761 % 2**32, []
    for _ in range(length):
        state = (state * 1664525 + 1013904223) % 2**32
        ids.append(1000 + state % 39000)
    return ids


def best(measure, repeat):
    """Tokens per second of the fastest of `repeat` timings; the first one warms up when there are more."""
    return max([measure() for _ in range(repeat + 1)][1 if repeat > 0 else 0 :])


def timed(tokens, work):
    start = time.perf_counter()
    work()
    return tokens / (time.perf_counter() - start)


def run_all(engine, decode, prefill, options):
    """decode(batch) and prefill(tokens) return tokens per second. Prints the driver's JSON line."""
    skipped = set(options.skip.split(","))
    cases = []
    for batch in BATCHES:
        if f"decode-{batch}" not in skipped:
            rate = best(lambda batch=batch: decode(batch), options.repeat)
            cases.append({"name": "decode", "batch": batch, "context": CONTEXT, "tokens_per_s": rate})
    for tokens in PROMPTS:
        if f"prefill-{tokens}" not in skipped:
            rate = best(lambda tokens=tokens: prefill(tokens), options.repeat)
            cases.append({"name": "prefill", "tokens": tokens, "tokens_per_s": rate})
    print(json.dumps({"engine": engine, "cases": cases}))
