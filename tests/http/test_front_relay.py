"""Requests through the front to a worker and back."""

import json
import time

import httpx
import pytest
from bodega import eventually, post_head

ERROR_KEYS = {"message", "type", "param", "code"}


def events_of(text):
    blocks = text.split("\n\n")
    assert blocks[-1] == ""
    for block in blocks[:-1]:
        assert block.startswith("data: "), block
    return [block[6:] for block in blocks[:-1]]


def test_an_answer_comes_back_whole(front):
    answer = front.ask("echo", headers={"x-request-id": "7", "cookie": "secret"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.content))
    told = answer.json()
    assert told["path"] == "/v1/completions"
    assert told["headers"]["x-request-id"] == "7"
    assert "cookie" not in told["headers"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/chat/completions",
        "/v1/completions/",
        "/tokenize",
        "/detokenize",
        "/apply-template",
    ],
)
def test_every_relayed_route_reaches_the_worker(front, path):
    answer = front.post(path, json={"prompt": "echo"})
    assert answer.json()["path"] == path.rstrip("/")


@pytest.mark.parametrize("model", [None, "", "default", "fake"])
def test_names_of_the_default_model(front, model):
    told = front.ask("echo", model).json()
    assert told["model"] == ("fake" if model is not None else None)


@pytest.mark.parametrize("model", ["nope", "fak", "Fake", "../x", "fake/../fake", "a" * 5000, "é\u0000"])
def test_an_unknown_model_is_404_without_a_look_up(front, model):
    began = time.monotonic()
    answer = front.ask("echo", model)
    assert answer.status_code == 404
    assert time.monotonic() - began < 1
    error = answer.json()["error"]
    assert set(error) == ERROR_KEYS
    assert error["code"] == "model_not_found" and error["param"] == "model"


def test_a_status_of_the_worker_is_the_clients(front):
    answer = front.ask("status 429")
    assert answer.status_code == 429 and answer.json()["error"]["code"] == "c"


def test_events_come_as_they_are_made(front):
    with httpx.stream("POST", front.url + "/v1/completions", json={"prompt": "stream 5 0.1"}) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        times = []
        text = ""
        for piece in answer.iter_text():
            times.append(time.monotonic())
            text += piece
    events = events_of(text)
    assert [json.loads(item)["index"] for item in events[:-1]] == [0, 1, 2, 3, 4]
    assert events[-1] == "[DONE]"
    assert times[-1] - times[0] > 0.3


def test_a_long_body_passes_whole(front):
    body = {"prompt": "echo", "padding": "é" * 3_000_000}
    data = json.dumps(body).encode()
    answer = front.post("/v1/completions", content=data)
    assert answer.json()["length"] == len(data)


def test_a_chunked_request_body(front):
    def pieces():
        yield b'{"prompt"'
        yield b': "echo"}'

    assert front.post("/v1/completions", content=pieces()).json()["length"] == 18


@pytest.mark.parametrize("prompt", ["hang", "stream 1000 0.05"])
def test_a_client_that_leaves_ends_the_workers_request(front, prompt):
    before = front.worker()["engine"]
    client = front.raw()
    body = json.dumps({"prompt": prompt})
    client.send(post_head("/v1/completions", len(body)) + body)
    assert eventually(lambda: front.worker()["engine"]["served"] == before["served"] + 1)
    if prompt != "hang":
        client.read_until(b'"index": 1')
    client.reset()
    assert eventually(lambda: front.worker()["engine"]["left"] == before["left"] + 1, 2)


def test_a_client_that_does_not_read_holds_the_worker_back_and_nobody_else(front):
    before = front.worker()["engine"]["sent_bytes"]
    client = front.raw(receive_buffer=4096)
    body = json.dumps({"prompt": "flood 100000000"})
    client.send(post_head("/v1/completions", len(body)) + body)
    time.sleep(1)
    first = front.worker()["engine"]["sent_bytes"] - before
    time.sleep(0.5)
    second = front.worker()["engine"]["sent_bytes"] - before
    assert 0 < first == second < 30_000_000
    assert front.ask("echo").status_code == 200
    client.close()


def test_a_slow_reader_gets_everything(front):
    with httpx.stream(
        "POST", front.url + "/v1/completions", timeout=60, json={"prompt": "flood 20000000"}
    ) as answer:
        time.sleep(0.5)
        text = "".join(answer.iter_text())
    events = events_of(text)
    assert [json.loads(item)["index"] for item in events[:-1]] == list(range(20000))


def test_many_streams_at_once(front):
    clients = []
    body = json.dumps({"prompt": "stream 20 0.02"})
    for _ in range(64):
        client = front.raw()
        client.send(post_head("/v1/completions", len(body)) + body)
        clients.append(client)
    for client in clients:
        text = client.read_until(b"0\r\n\r\n").decode()
        assert text.count('"index"') == 20 and "[DONE]" in text


def test_aliases(start):
    server = start("--model-id", "fake", "--model-aliases", "gpt-4=fake,claude-*=default,odd=gone")
    for name in ["gpt-4", "claude-3-opus", "claude-"]:
        assert server.ask("echo", name).json()["model"] == "fake"
    for name in ["gpt-4o", "claude", "odd"]:
        assert server.ask("echo", name).status_code == 404
