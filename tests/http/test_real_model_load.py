"""What clients do to the real engine: long texts, full queues, dropped and slow connections."""

import contextlib
import json
import threading
import time

import pytest
from bodega import Server, eventually, post_head

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
ANSWER = "The capital of France is Paris."


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("real"), "--output-bytes", "4096", fake=False)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """Room for one running request and three that wait."""
    server = Server(
        tmp_path_factory.mktemp("narrow"), "--max-concurrency", "1", "--queue-size", "3", fake=False
    )
    yield server
    server.stop()


def ask(server):
    answer = server.post("/v1/chat/completions", json={"messages": QUESTION, "temperature": 0})
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


def metric(server, name):
    for line in server.get("/metrics").text.splitlines():
        if line.startswith(name + "{"):
            return float(line.split()[-1])
    raise AssertionError(f"no metric {name}")


def active(server):
    return server.get("/v1/queue/stats").json()["queue_stats"]["active_requests"]


def waiting(server):
    return server.get("/v1/queue/stats").json()["queue_stats"]["waiting"]


@pytest.fixture
def open_stream():
    """Begins streams by clients with little room for what comes; they are gone after the test."""
    opened = []

    def begin(server, **more):
        body = json.dumps({"messages": QUESTION, "stream": True, "ignore_eos": True, **more})
        client = server.raw(receive_buffer=4096)
        opened.append((server, client))
        client.send(post_head("/v1/chat/completions", len(body)) + body)
        return client

    yield begin
    for _, client in opened:
        with contextlib.suppress(OSError):  # it has left already
            client.reset()
    for server, _ in opened:
        assert eventually(lambda server=server: active(server) == 0)


@pytest.mark.parametrize("sign", ["a", "字", "-", " "])
def test_a_long_run_holds_nobody_up(real, sign):
    """Fault 68: 200,000 signs without a break."""
    answers = {}

    def tokenize():
        answers["long"] = real.post("/tokenize", json={"prompt": sign * 200_000})

    thread = threading.Thread(target=tokenize)
    thread.start()
    slowest = 0
    while thread.is_alive():
        begun = time.monotonic()
        assert real.get("/health").status_code == 200
        slowest = max(slowest, time.monotonic() - begun)
    thread.join()
    assert slowest < 1
    assert answers["long"].status_code == 200
    assert answers["long"].json()["count"] >= 1000
    assert ask(real) == ANSWER


def test_a_prompt_is_never_cut_in_silence(real):
    """Fault 58."""
    text = " ".join(str(number) for number in range(9000))
    count = real.post("/tokenize", json={"prompt": text}).json()["count"]
    too_long = real.post("/v1/completions", json={"prompt": text})
    assert too_long.status_code == 400
    assert too_long.json()["error"]["code"] == "context_length_exceeded"
    assert str(count) in too_long.json()["error"]["message"]


def test_a_slow_reader_slows_nobody_and_loses_nothing(real, open_stream):
    def rests():
        before = metric(real, "bodega_generated_tokens_total")
        time.sleep(1)
        return metric(real, "bodega_generated_tokens_total") == before

    begun = metric(real, "bodega_generated_tokens_total")
    slow = open_stream(real, n=32, max_tokens=150, logprobs=True, top_logprobs=20)
    slow.read_until(b"data: ")
    assert ask(real) == ANSWER
    # What it asked for does not fit into the buffers on the way: its rows rest until it reads.
    assert eventually(rests, 90)
    assert metric(real, "bodega_generated_tokens_total") - begun < 32 * 150
    assert active(real) == 1
    text = (b"data: " + slow.read_until(b"0\r\n\r\n")).decode()
    assert text.count('"finish_reason":"length"') == 32
    assert "data: [DONE]" in text


def test_a_full_queue_says_when_to_come_again(narrow, open_stream):
    open_stream(narrow, max_tokens=4000).read_until(b"data: ")
    for _ in range(3):
        open_stream(narrow, max_tokens=4)
    assert eventually(lambda: waiting(narrow) == 3)
    refused = narrow.post("/v1/chat/completions", json={"messages": QUESTION})
    assert refused.status_code == 429
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert int(refused.headers["retry-after"]) >= 1
    assert narrow.get("/health").status_code == 200


def test_who_leaves_while_waiting_is_never_prefilled(narrow, open_stream):
    """Fault 55."""
    running = open_stream(narrow, max_tokens=4000)
    running.read_until(b"data: ")
    before = metric(narrow, "bodega_prompt_tokens_total")
    leavers = [open_stream(narrow, max_tokens=4) for _ in range(3)]
    assert eventually(lambda: waiting(narrow) == 3)
    for leaver in leavers:
        leaver.reset()
    assert eventually(lambda: waiting(narrow) == 0)
    running.reset()
    assert eventually(lambda: active(narrow) == 0)
    assert metric(narrow, "bodega_prompt_tokens_total") == before
    assert ask(narrow) == ANSWER
