"""How each engine is started for one round. Every function returns (version, {case: tokens per second})."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import time
import urllib.request

from cases import BATCHES, CONTEXT, PROMPTS, STEPS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = pathlib.Path(os.environ.get("BODEGA_BENCH_CACHE", pathlib.Path.home() / ".cache/bodega-bench"))
BINARY = ROOT / "build/release/bodega"


class EngineFailed(Exception):
    pass


def output_of(command, threads):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    words = [str(word) for word in command]
    run = subprocess.run(words, capture_output=True, text=True, env=environment)
    if run.returncode != 0:
        raise EngineFailed(f"{' '.join(words)}\n{run.stdout}{run.stderr}")
    return json.loads(run.stdout[run.stdout.index("{") :])


def requantized(model, name):
    path = CACHE / "models" / f"{model.stem}.{name}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [CACHE / "venv/bin/python", HERE / "requantize.py", model, path, name]
        subprocess.run(command, check=True, capture_output=True)
    return path


def driver(script, repeat, never=()):
    """A rival's driver, in the cache's virtual environment; it times its engine without sampling."""

    def measure(model, threads, skip):
        command = [CACHE / "venv/bin/python", HERE / script, "--model", model, "--threads", threads]
        answer = output_of([*command, "--repeat", repeat, "--skip", ",".join([*never, *skip])], threads)
        return answer["engine"], {case_key(case): case["tokens_per_s"] for case in answer["cases"]}

    return measure


def case_key(case):
    return f"decode-{case['batch']}" if case["name"] == "decode" else f"prefill-{case['tokens']}"


def bodega_rows(bench, skip, threads):
    """`bodega bench` goes through the whole engine: scheduling, sampling, text. Its prefill rate is the
    prompt over the time to the first token."""
    rates = {}
    streams = [batch for batch in BATCHES if f"decode-{batch}" not in skip]
    if streams:
        listed = ",".join(map(str, streams))
        command = [*bench, "--streams", listed, "--prompt-tokens", CONTEXT, "--tokens", STEPS]
        for row in output_of(command, threads)["rows"]:
            rates[f"decode-{row['streams']}"] = row["decode_tokens_per_s"]
    for tokens in PROMPTS:
        if f"prefill-{tokens}" not in skip:
            command = [*bench, "--streams", 1, "--prompt-tokens", tokens, "--tokens", 2]
            rates[f"prefill-{tokens}"] = output_of(command, threads)["rows"][0]["prefill_tokens_per_s"]
    return rates


def version():
    return subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout.strip()


def bodega(model, threads, skip):
    bench = [BINARY, "bench", model, "--json", "--threads", threads]
    return version(), bodega_rows(bench, skip, threads)


def bodega_over_http(model, threads, skip):
    """The same load through front and worker, from our own load generator."""
    with served(model, threads) as url:
        rates = bodega_rows([BINARY, "bench", "--against", url, "--json"], skip, threads)
    return version(), rates


@contextlib.contextmanager
def served(model, threads):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [BINARY, "serve", model, "--port", port, "--threads", threads]
    with subprocess.Popen([str(word) for word in command], stderr=subprocess.DEVNULL) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_healthy(url, server)
            yield url
        finally:
            server.terminate()


def wait_until_healthy(url, server):
    for _ in range(600):
        if server.poll() is not None:
            raise EngineFailed(f"bodega serve ended with {server.returncode}")
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
            if answer.status == 200:
                return
        time.sleep(0.1)
    raise EngineFailed("bodega serve did not become healthy in a minute")


def on_format(engine, name):
    return lambda model, threads, skip: engine(requantized(model, name), threads, skip)


LLAMA_CPP = driver("llama_cpp_driver.py", 2)

# name -> (function, rounds at most)
ENGINES = {
    "bodega": (bodega, 99),
    "bodega over HTTP": (bodega_over_http, 99),
    "llama.cpp": (LLAMA_CPP, 99),
    "llama.cpp Q4_0": (on_format(LLAMA_CPP, "Q4_0"), 99),
    "bodega Q4_0": (on_format(bodega, "Q4_0"), 99),
    # Minutes a round, and at least ten times slower: one round of the short cases.
    "mlx-lm": (driver("mlx_lm_driver.py", 0, ("decode-32", "prefill-4096")), 1),
}
