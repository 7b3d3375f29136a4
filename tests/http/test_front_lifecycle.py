"""Start and end of server and workers: busy ports, failed loads, deaths, drains."""

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import time

import httpx
import pytest
from bodega import BINARY, eventually, post_head


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] != "Z"


def stream(server, prompt):
    client = server.raw()
    body = json.dumps({"prompt": prompt})
    client.send(post_head("/v1/completions", len(body)) + body)
    return client


def test_a_busy_port_fails_at_once_with_the_reason(start):
    first = start("--model-id", "fake")
    began = time.monotonic()
    second = start(
        "--model-id", "fake", "--port", str(first.port), wait=False, environment={"FAKE_LOAD_SECONDS": "30"}
    )
    assert second.process.wait(5) != 0
    assert time.monotonic() - began < 3
    assert str(first.port) in second.log() and "in use" in second.log()
    assert "worker was started" not in second.log()
    assert first.get("/health").status_code == 200


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_each_way_to_name_this_machine(start, host):
    if host == "::1":
        with socket.socket(socket.AF_INET6) as probe:
            try:
                probe.bind((host, 0))
            except OSError:
                pytest.skip("no IPv6 here")
    server = start("--model-id", "fake", "--host", host, wait=False)
    server.wait_for_port()
    url = f"http://[::1]:{server.port}" if host == "::1" else f"http://{host}:{server.port}"
    assert eventually(lambda: httpx.get(url + "/health").status_code == 200)


def test_while_a_model_loads_requests_are_told_to_come_again(start):
    server = start("--model-id", "fake", wait=False, environment={"FAKE_LOAD_SECONDS": "1"})
    server.wait_for_port()
    health = server.get("/health")
    assert health.status_code == 503 and health.json()["model_status"] == "loading"
    answer = server.ask("echo")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    server.wait_until_ready()
    assert server.ask("echo").status_code == 200


def test_a_model_that_cannot_load_ends_the_server(start):
    server = start("broken", wait=False)
    assert server.process.wait(10) == 1
    assert "the model is broken" in server.log()
    assert "could not be loaded" in server.log()


def test_a_killed_worker_is_a_typed_503_and_comes_back(start):
    server = start("--model-id", "fake")
    pid = server.worker()["pid"]
    answer = server.ask("die")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    health = server.get("/health")
    if health.status_code == 503:
        assert health.json()["model_status"] == "restarting"
    server.wait_until_ready()
    assert server.worker()["pid"] != pid and server.worker()["restarts"] == 1
    assert server.ask("echo").status_code == 200


def test_a_stream_that_loses_its_worker_ends_in_an_error_event(start):
    server = start("--model-id", "fake")
    with httpx.stream("POST", server.url + "/v1/completions", json={"prompt": "stream-die 3"}) as answer:
        text = "".join(answer.iter_text())  # a proper end, or httpx raises
    blocks = text.split("\n\n")
    assert blocks[-1] == "" and all(block.startswith("data: ") for block in blocks[:-1])
    values = [json.loads(block[6:]) for block in blocks[:-1]]
    assert [value.get("index") for value in values[:-1]] == [0, 1, 2]
    assert set(values[-1]["error"]) == {"message", "type", "param", "code"}


def test_a_body_that_loses_its_worker_is_cut_not_made_whole(start):
    server = start("--model-id", "fake")
    with pytest.raises(httpx.RemoteProtocolError):
        server.ask("body-die")


def test_kill_9_under_load_hits_only_that_workers_requests(start, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("models:\n  - {model_id: one, model_path: a}\n  - {model_id: two, model_path: b}\n")
    server = start("--config", str(config))
    assert eventually(lambda: server.ask("echo", "two").status_code == 200)
    victim = server.worker(0)["pid"]

    def run(model):
        body = {"model": model, "prompt": "stream 60 0.02"}
        with httpx.stream("POST", server.url + "/v1/completions", json=body, timeout=30) as answer:
            return "".join(answer.iter_text())

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        ones = [pool.submit(run, "one") for _ in range(16)]
        twos = [pool.submit(run, "two") for _ in range(16)]
        time.sleep(0.6)
        os.kill(victim, signal.SIGKILL)
        for future in ones:
            assert '"error"' in future.result() and "[DONE]" not in future.result()
        for future in twos:
            text = future.result()
            assert text.count('"index"') == 60 and "[DONE]" in text
    assert eventually(lambda: server.ask("echo", "one").status_code == 200)
    assert server.process.poll() is None


def test_deaths_in_a_row_are_waited_out_longer_each_time(start):
    server = start("--model-id", "fake")
    gaps = []
    for _ in range(3):
        server.ask("die")
        began = time.monotonic()
        server.wait_until_ready()
        gaps.append(time.monotonic() - began)
    for gap, wait in zip(gaps, [0.25, 0.5, 1.0]):  # and the time to load
        assert gap >= wait


def test_no_worker_survives_its_front(start):
    server = start("--model-id", "fake")
    pid = server.worker()["pid"]
    server.process.kill()
    server.process.wait()
    assert eventually(lambda: not alive(pid), 5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(start, number):
    server = start("--model-id", "fake")
    pid = server.worker()["pid"]
    idle = server.raw()
    idle.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    idle.read_answer()
    client = stream(server, "stream 10 0.1")
    client.read_until(b'"index": 1')
    server.signal(number)
    assert idle.read_all() == b""
    assert eventually(lambda: socket.socket().connect_ex(("127.0.0.1", server.port)) != 0)
    rest = client.read_all().decode()
    assert '"index": 9' in rest and "[DONE]" in rest
    assert server.process.wait(10) == 0
    assert not alive(pid)


def test_a_drain_has_a_bound(start):
    server = start("--model-id", "fake", "--drain-seconds", "1")
    waiting = stream(server, "hang")
    streaming = stream(server, "stream 1000 0.05")
    streaming.read_until(b'"index": 1')
    assert eventually(lambda: server.worker()["engine"]["served"] == 2)
    began = time.monotonic()
    server.signal()
    assert server.process.wait(10) == 0
    assert 0.8 < time.monotonic() - began < 4
    assert waiting.read_all().startswith(b"HTTP/1.1 503")
    text = streaming.read_all()
    assert b'"error"' in text and text.endswith(b"0\r\n\r\n") and b"[DONE]" not in text


def test_a_second_signal_ends_at_once(start):
    server = start("--model-id", "fake", "--drain-seconds", "60")
    pid = server.worker()["pid"]
    client = stream(server, "hang")
    assert eventually(lambda: server.worker()["engine"]["served"] == 1)
    server.signal()
    time.sleep(0.2)
    assert server.process.poll() is None
    server.signal()
    assert server.process.wait(2) != 0
    assert client.read_all() == b""
    assert eventually(lambda: not alive(pid), 5)


def test_nothing_is_left_behind(start):
    def folders():
        return {name for name in os.listdir("/tmp") if name.startswith("bodega-")}

    before = folders()
    server = start("--model-id", "fake", environment={"TMPDIR": "/tmp"})
    made = folders() - before
    assert len(made) == 1
    assert os.stat(f"/tmp/{made.pop()}").st_mode & 0o777 == 0o700
    server.signal()
    assert server.process.wait(10) == 0
    assert folders() <= before


def test_a_trickling_crowd_does_not_keep_others_out(start):
    server = start("--model-id", "fake", "--read-deadline", "2")
    crowd = [server.raw() for _ in range(200)]
    for _ in range(2):
        for client in crowd:
            client.send("G")
        began = time.monotonic()
        assert server.ask("echo").status_code == 200
        assert time.monotonic() - began < 1
        time.sleep(0.3)
    time.sleep(2)
    closed = 0
    for client in crowd:
        closed += client.read_all().startswith(b"HTTP/1.1 4")
    assert closed == 200


def test_a_flag_wins_over_the_environment_and_that_over_the_file(start, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("server: {api_keys: [file]}\nmodels: [{model_id: fake, model_path: a}]\n")
    server = start("--config", str(config))
    assert server.ask("echo", headers={"x-api-key": "file"}).status_code == 200
    keys = {"BODEGA_API_KEYS": "environment"}
    server = start("--config", str(config), environment=keys)
    assert server.ask("echo", headers={"x-api-key": "file"}).status_code == 401
    assert server.ask("echo", headers={"x-api-key": "environment"}).status_code == 200
    server = start("--config", str(config), "--api-keys", "flag", environment=keys)
    assert server.ask("echo", headers={"x-api-key": "environment"}).status_code == 401
    assert server.ask("echo", headers={"x-api-key": "flag"}).status_code == 200


def test_a_key_that_is_not_known_ends_the_start_with_its_line(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("server:\n  prt: 1\n")
    done = subprocess.run([BINARY, "serve", "--config", config], capture_output=True, timeout=10)
    assert done.returncode != 0
    assert f"{config}:2: " in done.stderr.decode() and "prt" in done.stderr.decode()


def test_unknown_flags_and_bad_values_are_refused():
    for arguments in [["--nope", "1"], ["--port", "99999"], ["--queue-size", "many"]]:
        done = subprocess.run([BINARY, "serve", *arguments], capture_output=True, timeout=10)
        assert done.returncode != 0 and done.stderr
