#!/usr/bin/env python3
"""Counts the instructions of the hot CPU kernels (AVX2) and compares them with a committed file.

Times are noise on a shared machine, instructions are not: a count that moves by more than 3 % is a change
of the kernels or of the compiler, and is committed on purpose: scripts/instruction_counts.py --write
Needs valgrind and build/release/bench/micro/kernels_count.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/release/bench/micro/kernels_count"
COMMITTED = ROOT / "bench/micro/instructions-avx2.json"
ALLOWED = 0.03
CASES = (
    "linear 4 1",
    "linear 4 2",
    "linear 4 4",
    "linear 4 32",
    "linear 8 1",
    "linear 8 32",
    "attention 3",
    "attention 48",
)


def count(case):
    command = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=counted_run",
        PROGRAM,
    ]
    environment = {**os.environ, "BODEGA_CPU_ISA": "avx2"}
    run = subprocess.run([*command, *case.split()], env=environment, capture_output=True, text=True)
    collected = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or collected is None:
        sys.exit(f"{case}: {run.stderr}")
    return int(collected.group(1))


def compiler():
    version = subprocess.run(["c++", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"g++ {version}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the committed counts")
    arguments = parser.parse_args()
    if "avx2" not in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        sys.exit("instruction counts: this processor has no AVX2")
    counts = {case: count(case) for case in CASES}
    if arguments.write:
        COMMITTED.write_text(json.dumps({"compiler": compiler(), "instructions": counts}, indent=1) + "\n")
        return
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))
    if committed["compiler"] != compiler():
        print(f"counted with {compiler()}, committed with {committed['compiler']}: shown, not judged")
    moved = False
    for case, got in counts.items():
        change = got / committed["instructions"][case] - 1
        moved = moved or abs(change) > ALLOWED
        print(f"{case:14} {got:12d} {change:+.2%}")
    if moved and committed["compiler"] == compiler():
        sys.exit("counts moved by more than 3 %: if that is meant, run scripts/instruction_counts.py --write")


if __name__ == "__main__":
    main()
