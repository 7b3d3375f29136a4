#!/usr/bin/env python3
"""Measures what the cost model promises on this machine, over HTTP with the default model:
first token of a long shared prefix cold, from memory, and from the SSD after a restart; gaps of
running streams while a long prompt arrives; the error of the predicted steps. Prints JSON.

usage: memory_model.py [--binary build/release/bodega] [--rounds 3]
"""

import argparse
import http.client
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Server:
    def __init__(self, binary, folder, *flags):
        port_file = folder / "port"
        port_file.unlink(missing_ok=True)
        self.log = open(folder / "log", "ab")
        command = [binary, "serve", "--port", "0", "--port-file", port_file, *flags]
        environment = {**os.environ, "BODEGA_CACHE_DIR": str(folder / "cache")}
        self.process = subprocess.Popen(
            [str(part) for part in command], stdout=self.log, stderr=self.log, env=environment
        )
        while not port_file.exists():
            time.sleep(0.02)
        self.port = int(port_file.read_text())
        while self.get("/health")[0] != 200:
            time.sleep(0.05)

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def stream(self, prompt, max_tokens):
        """Seconds since the request of each token that arrived."""
        body = {
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "ignore_eos": True,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        begin = time.monotonic()
        connection.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        times = []
        for line in answer:
            if line.startswith(b"data: {"):
                times.append(time.monotonic() - begin)
        return begin, times

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.log.close()


def prompt_of(tokens, salt):
    """Token ids of no meaning, different from the first on."""
    return [1000 + (i * 37 + salt * 7919) % 40000 for i in range(tokens)]


def first_tokens(binary, folder, salt):
    server = Server(binary, folder)
    server.stream(prompt_of(64, salt + 500), 4)
    cold = server.stream(prompt_of(2000, salt), 2)[1][0]
    hot = server.stream([*prompt_of(2000, salt), 5, 6, 7, 8], 2)[1][0]
    server.stop()
    server = Server(binary, folder)
    time.sleep(0.5)
    server.stream(prompt_of(64, salt + 501), 4)
    ssd = server.stream([*prompt_of(2000, salt), 9, 8, 7, 6], 2)[1][0]
    hits = next(
        line.split()[-1]
        for line in server.get("/metrics")[1].splitlines()
        if line.startswith("bodega_kv_ssd_hits_total{")
    )
    server.stop()
    return {"cold_s": cold, "hot_s": hot, "ssd_s": ssd, "ssd_blocks": float(hits)}


def gaps(binary, folder, salt, flags=()):
    server = Server(binary, folder, "--ssd-cache=false", *flags)
    server.stream(prompt_of(64, salt + 500), 4)
    streams = []
    threads = [
        threading.Thread(target=lambda i=i: streams.append(server.stream(prompt_of(40, salt + i), 500)))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    time.sleep(4)
    begin, times = server.stream(prompt_of(6000, salt + 100), 2)
    for thread in threads:
        thread.join()
    end = begin + times[0]
    before, during = [], []
    for start, stream in streams:
        absolute = [start + t for t in stream]
        for earlier, later in zip(absolute, absolute[1:]):
            if later < begin and earlier > start + 1:
                before.append(later - earlier)
            elif earlier > begin and later < end:
                during.append(later - earlier)
    engine = json.loads(server.get("/v1/admin/loaded-models")[1])["data"][0]["engine"]
    server.stop()
    during.sort()
    return {
        "median_before_s": statistics.median(before),
        "p99_during_s": during[int(len(during) * 0.99)],
        "prompt_ttft_s": times[0],
        "tokens_during": len(during),
        "cost_model": engine["cost_model"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bodega")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=["first", "gaps", "all"], default="all")
    flags = parser.parse_args()
    report = {"first_token": [], "gaps": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for i in range(flags.rounds):
            if flags.part != "gaps":
                report["first_token"].append(first_tokens(flags.binary, folder, 1000 * i))
            if flags.part != "first":
                report["gaps"].append(gaps(flags.binary, folder, 1000 * i))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
