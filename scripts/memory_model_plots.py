#!/usr/bin/env python3
"""Draws the plots of docs/memory-model.md: runs `bodega simulate` and writes docs/plots/*.svg and the
numbers beside them in docs/plots/memory-model.json. Same seeds, same plots.

usage: memory_model_plots.py [--binary build/release/bodega] [--requests 800]
"""

import argparse
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "plots"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 360, 70, 50, 40, 170
COLOURS = ["#1f5fbf", "#c0392b", "#2e8b57", "#b8860b", "#7d3c98"]


class Simulator:
    def __init__(self, binary, requests):
        self.binary, self.requests = binary, requests

    def run(self, **options):
        command = [str(self.binary), "simulate", "--json"]
        for name, value in {"requests": self.requests, **options}.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)


def line_plot(path, title, x_label, y_label, xs, series):
    """`xs`: labels, evenly spaced; `series`: {name: values}."""
    top = max(max(values) for values in series.values()) * 1.08 or 1
    plot_w, plot_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(i, value):
        x = LEFT + plot_w * (i / max(len(xs) - 1, 1))
        return x, TOP + plot_h * (1 - value / top)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{title}</text>',
        f'<text x="{LEFT + plot_w / 2}" y="{HEIGHT - 10}" text-anchor="middle">{x_label}</text>',
        f'<text transform="translate(16 {TOP + plot_h / 2}) rotate(-90)" text-anchor="middle">'
        f"{y_label}</text>",
    ]
    for step in range(5):
        value = top / 1.08 * step / 4
        y = place(0, value)[1]
        out.append(f'<path d="M{LEFT} {y:.1f}h{plot_w}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for i, label in enumerate(xs):
        out.append(
            f'<text x="{place(i, 0)[0]:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{label}</text>'
        )
    for (name, values), colour in zip(series.items(), COLOURS):
        points = " ".join("{:.1f},{:.1f}".format(*place(i, v)) for i, v in enumerate(values))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y in (place(i, v) for i, v in enumerate(values)):
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        y = TOP + 16 + 20 * list(series).index(name)
        out.append(f'<path d="M{WIDTH - RIGHT + 14} {y}h18" stroke="{colour}" stroke-width="3"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 38}" y="{y + 4}">{name}</text>')
    path.write_text("\n".join([*out, "</svg>", ""]), encoding="utf-8")


def policies(simulator):
    pools = ["2GiB", "3GiB", "4GiB", "8GiB", "16GiB"]
    ways = {
        "worth + SSD": {"policy": "worth", "ssd": "32GiB"},
        "worth, no SSD": {"policy": "worth", "ssd": 0},
        "LRU, no SSD": {"policy": "lru", "ssd": 0},
        "FIFO, no SSD": {"policy": "fifo", "ssd": 0},
    }
    series = {name: [] for name in ways}
    for name, options in ways.items():
        for pool in pools:
            result = simulator.run(mix="agents", rate=0.1, pool=pool, **options)
            series[name].append(100 * result["recomputed_tokens"] / result["prompt_tokens"])
    line_plot(
        OUT / "policies.svg",
        "Agents, 8B on an M4 Max: prompt tokens computed again",
        "KV pool in memory",
        "% of prompt tokens",
        pools,
        series,
    )
    return {"pools": pools, "recomputed_percent": series}


def chunks(simulator):
    rates = [0.05, 0.1, 0.2, 0.3]
    ways = {"by price": 0, "512": 512, "2048": 2048}
    gaps, firsts = {n: [] for n in ways}, {n: [] for n in ways}
    for name, chunk in ways.items():
        for rate in rates:
            result = simulator.run(mix="documents", rate=rate, chunk=chunk, requests=simulator.requests // 4)
            gaps[name].append(result["gap_p99_s"] * 1e3)
            firsts[name].append(result["ttft_p95_s"])
    title = "Documents, 8B on an M4 Max: "
    line_plot(OUT / "chunk_gaps.svg", title + "p99 gap of streams", "requests/s", "ms", rates, gaps)
    line_plot(OUT / "chunk_ttft.svg", title + "p95 first token", "requests/s", "s", rates, firsts)
    return {"rates": rates, "gap_p99_ms": gaps, "ttft_p95_s": firsts}


def fleets(simulator):
    sizes = [1, 10, 100, 1000]
    series = {"by prefix": [], "at random": []}
    for size in sizes:
        for name, routing in (("by prefix", "prefix"), ("at random", "random")):
            result = simulator.run(
                mix="chat",
                machines=size,
                rate=0.5 * size,
                pool="1GiB",
                ssd=0,
                routing=routing,
                requests=max(simulator.requests, 10 * size),
            )
            series[name].append(100 * result["hot_share"])
    line_plot(
        OUT / "fleet.svg",
        "Chat, a fleet of M4 Max: prompt tokens found in memory",
        "machines",
        "% of prompt tokens",
        sizes,
        series,
    )
    return {"machines": sizes, "hot_percent": series}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bodega")
    parser.add_argument("--requests", type=int, default=800)
    flags = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    simulator = Simulator(flags.binary, flags.requests)
    numbers = {"requests": flags.requests}
    for part in (policies, chunks, fleets):
        numbers[part.__name__] = part(simulator)
        print(part.__name__, json.dumps(numbers[part.__name__]))
    (OUT / "memory-model.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
