"""The SSD cache of the real server: a restart keeps prefixes, answers stay the same to the byte."""

import pathlib

import pytest
from bodega import Server, eventually

FILLER = " ".join(
    f"Item {i}: the {i * 7 % 31} boxes of lot {i * 13 % 97} are stored in row {i}." for i in range(60)
)
QUESTION = [{"role": "system", "content": FILLER}, {"role": "user", "content": "Name one row."}]


@pytest.fixture
def serve(tmp_path):
    servers = []

    def start(name, **environment):
        folder = tmp_path / name
        folder.mkdir()
        environment = {"BODEGA_CACHE_DIR": str(tmp_path / "cache"), "BODEGA_SSD_CACHE": "true", **environment}
        servers.append(Server(folder, fake=False, environment=environment))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def ask(server):
    body = {"messages": QUESTION, "temperature": 0, "max_tokens": 24}
    answer = server.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    usage = answer.json()["usage"]
    return answer.json()["choices"][0]["message"]["content"], usage["prompt_tokens_details"]["cached_tokens"]


def end(server):
    """As a user would: what is worth it is written before the worker ends."""
    server.process.terminate()
    assert server.process.wait(30) == 0, server.log()


def metric(server, name):
    for line in server.get("/metrics").text.splitlines():
        if line.startswith(name + "{"):
            return float(line.split()[-1])
    raise AssertionError(f"no metric {name}")


def files(tmp_path):
    return list(pathlib.Path(tmp_path / "cache" / "kv").rglob("*.kv"))


def test_a_restart_keeps_the_store_and_the_answer(serve, tmp_path):
    first = serve("first")
    cold, cached = ask(first)
    assert cached == 0
    end(first)
    assert files(tmp_path), "nothing was written at the end"
    second = serve("second")
    eventually(lambda: metric(second, "bodega_kv_ssd_bytes") > 0)
    warm, cached = ask(second)
    assert warm == cold
    assert cached > 1000
    assert metric(second, "bodega_kv_ssd_hits_total") > 50


def test_a_damaged_store_is_computed_again(serve, tmp_path):
    first = serve("first")
    cold, _ = ask(first)
    end(first)
    for file in files(tmp_path):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    second = serve("second")
    eventually(lambda: metric(second, "bodega_kv_ssd_bytes") > 0)
    assert ask(second)[0] == cold
    assert metric(second, "bodega_kv_ssd_bad_total") > 0


def test_switched_off_nothing_is_written(serve, tmp_path):
    server = serve("first", BODEGA_SSD_CACHE="false")
    ask(server)
    end(server)
    assert not files(tmp_path)


def test_prices_are_shown_with_their_error(serve):
    server = serve("first")
    for _ in range(3):
        ask(server)
    engine = server.get("/v1/admin/loaded-models").json()["data"][0]["engine"]
    assert engine["cost_model"]["decode_step_ms"] > 0
    assert engine["cost_model"]["steps"] > 0
    assert metric(server, "bodega_cost_decode_step_seconds") > 0
    assert metric(server, "bodega_cost_prediction_error_ratio") >= 0
