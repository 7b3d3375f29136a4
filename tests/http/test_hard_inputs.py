"""Inputs that once broke something: each is refused or answered, and a plain request still works."""

import subprocess
import time

import pytest
from bodega import BINARY, RawSocket, Server, eventually

PLAIN = {"messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 2}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    server = Server(folder, "--log-requests", "/dev/full", "--connections", "20", fake=False)
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def still_answers(real):
    yield
    assert eventually(lambda: real.post("/v1/chat/completions", json=PLAIN).status_code == 200)
    assert real.get("/health").json()["status"] == "ok"


def complete(server, **fields):
    return server.post("/v1/completions", json={"prompt": "Hello world", "temperature": 0, **fields})


def test_run_asks_a_server_that_is_up(real):
    command = [
        BINARY,
        "run",
        "--port",
        str(real.port),
        "smollm2-135m-instruct",
        "Say hi.",
        "--max-tokens",
        "3",
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()


def test_text_that_cannot_fit_is_refused_before_it_is_tokenized(real):
    started = time.monotonic()
    answer = complete(real, prompt="a b" * 7_000_000)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert time.monotonic() - started < 5


def test_silent_connections_give_way(real):
    silent = [RawSocket(real.port) for _ in range(25)]
    time.sleep(0.7)
    assert real.post("/v1/chat/completions", json=PLAIN).status_code == 200
    for client in silent:
        client.close()


def test_a_refused_connection_is_told_when_to_come_back(real):
    silent = [RawSocket(real.port) for _ in range(20)]
    late = RawSocket(real.port)
    late.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head, _ = late.read_answer()
    for client in [*silent, late]:
        client.close()
    assert " 200 " in head or "retry-after: 1" in head.lower(), head


def test_echo_alone_samples_nothing(real):
    answer = complete(real, echo=True, max_tokens=0).json()
    assert answer["choices"][0]["text"] == "Hello world"
    assert answer["usage"]["completion_tokens"] == 0


def test_answers_of_one_request_are_bounded(real):
    answer = complete(real, prompt=["a"] * 128, n=128, max_tokens=1)
    assert answer.status_code == 400, answer.text


@pytest.mark.parametrize("penalty", [1e-38, 1e-45, 0, 1e30])
def test_extreme_penalties_are_the_clients_mistake(real, penalty):
    assert complete(real, repetition_penalty=penalty, max_tokens=2).status_code == 400


def test_a_cut_character_is_not_shown(real):
    answer = complete(real, prompt="a", max_tokens=1, logit_bias={"10813": 100}).json()
    assert "\ufffd" not in answer["choices"][0]["text"]


def test_null_is_absent_for_unknown_fields_too(real):
    answer = real.post("/v1/chat/completions", json={**PLAIN, "verbosity": None}).json()
    assert "warnings" not in answer


def test_a_log_that_cannot_be_written_is_reported_once(real):
    for _ in range(3):
        complete(real, max_tokens=1)
    assert eventually(lambda: real.log().count("The request log cannot be written") == 1)


def test_a_folder_is_no_config_file():
    run = subprocess.run([BINARY, "serve", "--config", "/tmp"], capture_output=True, text=True, timeout=20)
    assert run.returncode != 0
    assert "/tmp" in run.stderr


def test_bench_says_why_everything_failed():
    command = [BINARY, "bench", "--against", "http://127.0.0.1:1", "--streams", "1"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert run.returncode != 0
    assert "Every request failed" in run.stderr
