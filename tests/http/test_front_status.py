"""What the front tells of itself and its models; methods, paths, keys, browsers."""

import json
import time

import pytest
from bodega import Server, eventually, post_head

GET_ROUTES = [
    "/health",
    "/v1/models",
    "/v1/models/fake",
    "/v1/queue/stats",
    "/v1/admin/loaded-models",
    "/metrics",
]
POST_ROUTES = ["/v1/chat/completions", "/v1/completions", "/tokenize"]


def raw_request(front, text):
    client = front.raw()
    client.send(text)
    return client.read_answer()


def test_health_tells_of_every_model(front):
    answer = front.get("/health")
    assert answer.status_code == 200
    told = answer.json()
    assert (told["status"], told["model_id"], told["model_status"]) == ("ok", "fake", "loaded")
    assert told["exact"] is True
    detail = told["models_detail"][0]
    assert (detail["id"], detail["status"]) == ("fake", "loaded") and detail["ram_usage_mb"] > 1


def test_models(front):
    listed = front.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [card["id"] for card in listed["data"]] == ["fake"]
    assert listed["data"][0]["context_length"] == 128
    assert front.get("/v1/models/fake").json() == listed["data"][0]
    answer = front.get("/v1/models/owner%2Fname")
    assert answer.status_code == 404 and answer.json()["error"]["code"] == "model_not_found"


def test_an_id_may_contain_slashes(start):
    server = start("--model-id", "owner/name")
    for path in ["owner/name", "owner%2Fname", "owner/name/"]:
        assert server.get(f"/v1/models/{path}").json()["id"] == "owner/name"
    assert server.ask("echo", "owner/name").json()["model"] == "owner/name"
    assert server.get("/v1/models/owner").status_code == 404


def test_queue_stats_are_per_model_and_in_all(front):
    told = front.get("/v1/queue/stats").json()
    assert told["queue_stats"] == told["models"]["fake"]
    assert told["queue_stats"]["preempted"] == 2
    assert told["queue_stats"]["predicted_wait_seconds"] == 0.5


def test_several_models(start, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("models:\n  - {model_id: one, model_path: a}\n  - {model_id: two, model_path: b}\n")
    server = start("--config", str(config))
    assert eventually(
        lambda: [card.get("context_length") for card in server.get("/v1/models").json()["data"]] == [128, 128]
    )
    assert [card["id"] for card in server.get("/v1/models").json()["data"]] == ["one", "two"]
    assert server.ask("echo", "two").json()["model"] == "two"
    assert server.ask("echo").status_code == 200
    stats = server.get("/v1/queue/stats").json()
    assert stats["queue_stats"]["queue_size"] == 200
    assert set(stats["models"]) == {"one", "two"}
    metrics = server.get("/metrics").text
    assert metrics.count("# TYPE fake counter") == 1
    for model in ["one", "two"]:
        assert f'fake{{model="{model}"}} 1' in metrics
        assert f'bodega_worker_up{{model="{model}"}} 1' in metrics
    pids = {entry["pid"] for entry in server.get("/v1/admin/loaded-models").json()["data"]}
    assert len(pids) == 2


@pytest.mark.parametrize("path", GET_ROUTES)
def test_head_has_the_headers_of_get(front, path):
    client = front.raw()
    client.send(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = client.read_until(b"\r\n\r\n").decode()
    assert head.startswith("HTTP/1.1 200"), head
    client.send(f"GET {path}/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
    got, body = client.read_answer()
    assert got.startswith("HTTP/1.1 200") and body

    def names(text):
        return sorted(line.split(":")[0] for line in text.split("\r\n")[1:])

    assert names(head) == names(got)


@pytest.mark.parametrize("path", POST_ROUTES)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
def test_a_wrong_method_is_405_with_allow(front, path, method):
    length = "Content-Length: 0\r\n" if method in ("PUT", "PATCH") else ""
    client = front.raw()
    client.send(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n")
    head = client.read_until(b"\r\n\r\n").decode()
    assert head.startswith("HTTP/1.1 405")
    assert "allow: POST, OPTIONS\r\n" in head


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/nothing",
        "/v1/chat",
        "//health",
        "/v1/models%00",
        "/v1/chat/completions/x",
        "/favicon.ico",
    ],
)
def test_an_unknown_route_is_a_json_404(front, path):
    head, body = raw_request(front, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert head.split(" ")[1] == ("400" if "%00" in path else "404")
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


BAD_BODIES = {
    "unfinished": b'{"prompt": "echo"',
    "array": b"[]",
    "number": b"7",
    "null": b"null",
    "empty": b"",
    "two objects": b"{}{}",
    "raw byte FF": b'{"prompt": "\xff"}',
    "lone surrogate": b'{"prompt": "\\ud800"}',
    "duplicate key": b'{"model": "fake", "model": "nope"}',
    "duplicate key inside": b'{"prompt": "echo", "x": {"a": 1, "a": 2}}',
    "deep": b'{"x":' * 100 + b"1" + b"}" * 100,
    "deep array": b'{"x":' + b"[" * 20000 + b"]" * 20000 + b"}",
    "model is a number": b'{"model": 7}',
    "model is an object": b'{"model": {}}',
    "comment": b'{"prompt": "echo" /* x */}',
    "trailing comma": b'{"prompt": "echo",}',
    "NaN": b'{"prompt": NaN}',
    "control character": b'{"prompt": "a\x01"}',
    "byte order mark": b'\xef\xbb\xbf{"prompt": "echo"}',
}


@pytest.mark.parametrize("name", BAD_BODIES)
@pytest.mark.parametrize("padding", [0, 100_000])
def test_a_bad_body_is_400_and_the_connection_serves_on(front, name, padding):
    """Also when the body is long, and so read elsewhere than on the event loop."""
    body = b" " * padding + BAD_BODIES[name]
    client = front.raw()
    for _ in range(2):
        client.send(post_head("/v1/completions", len(body)))
        client.send(body)
        head, answer = client.read_answer()
        assert head.startswith("HTTP/1.1 400"), (head, answer)
        assert json.loads(answer)["error"]["type"] == "invalid_request_error"
    client.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.read_answer()[0].startswith("HTTP/1.1 200")


def test_a_number_beyond_double_is_no_crash(front):
    body = b'{"prompt": "echo", "x": 1e999999, "y": ' + b"9" * 400 + b"}"
    assert front.post("/v1/completions", content=body).status_code in (200, 400)
    assert front.get("/health").status_code == 200


@pytest.fixture(scope="module")
def keyed(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("keyed"), "--model-id", "fake", "--api-keys", "key-one,key-two")
    yield server
    server.stop()


def test_a_kept_connection_survives_a_refusal_and_ends_when_told(start):
    server = start("--model-id", "fake", "--idle-timeout", "1")
    client = server.raw()
    body = b'{"model": 7, "padding": "' + b"x" * 3_000_000 + b'"}'
    client.send(post_head("/v1/completions", len(body)))
    client.send(body)
    head, _ = client.read_answer()
    assert head.startswith("HTTP/1.1 400") and "keep-alive: timeout=1\r\n" in head
    body = b'{"prompt": "echo"}'
    client.send(post_head("/v1/completions", len(body)))
    client.send(body)
    assert client.read_answer()[0].startswith("HTTP/1.1 200")
    assert client.read_all() == b""  # closed after the second that was told


def test_a_client_that_asks_before_it_sends(front):
    body = b'{"prompt": "echo", "padding": "' + b"x" * 2000 + b'"}'
    client = front.raw()
    began = time.monotonic()
    client.send(post_head("/v1/completions", len(body), "Expect: 100-continue"))
    assert client.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(body)
    assert client.read_answer()[0].startswith("HTTP/1.1 200")
    assert time.monotonic() - began < 0.9


def test_requests_sent_together_are_answered_in_order(front):
    client = front.raw()
    slow = b'{"prompt": "stream 3 0.1"}'
    quick = b'{"prompt": "echo"}'
    client.send(post_head("/v1/completions", len(slow)).encode() + slow)
    client.send(post_head("/v1/completions", len(quick)).encode() + quick)
    client.send("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"[DONE]" in client.read_until(b"0\r\n\r\n")
    assert json.loads(client.read_answer()[1])["path"] == "/v1/completions"
    assert json.loads(client.read_answer()[1])["object"] == "list"


def test_a_request_id_comes_back(front):
    for path in ["/v1/models", "/nowhere"]:
        assert front.get(path, headers={"x-request-id": "abc"}).headers["x-request-id"] == "abc"
    assert front.ask("echo", headers={"x-request-id": "d"}).headers["x-request-id"] == "d"


class TestKeys:
    @pytest.mark.parametrize(
        "headers",
        [{"authorization": "Bearer key-one"}, {"Authorization": "bearer  key-two"}, {"x-api-key": "key-one"}],
    )
    def test_a_key_lets_in(self, keyed, headers):
        assert keyed.ask("echo", headers=headers).status_code == 200
        told = keyed.ask("echo", headers=headers).json()["headers"]
        assert not {"authorization", "x-api-key"} & set(told)

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"authorization": "Bearer"},
            {"authorization": "key-one"},
            {"authorization": "Bearer key-on"},
            {"x-api-key": ""},
            {"authorization": "Bearer key-one,key-two"},
        ],
    )
    def test_without_one_only_health_answers(self, keyed, headers):
        for path in GET_ROUTES[1:] + ["/nowhere"]:
            answer = keyed.get(path, headers=headers)
            assert answer.status_code == 401, path
            assert answer.json()["error"]["code"]
        assert keyed.ask("echo", headers=headers).status_code == 401
        assert keyed.get("/health", headers=headers).status_code == 200

    def test_preflight_needs_no_key_and_errors_carry_cors(self, keyed):
        head, _ = raw_request(
            keyed,
            "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            "Origin: http://localhost:3000\r\n"
            "Access-Control-Request-Method: POST\r\n"
            "Access-Control-Request-Headers: authorization,x-stainless-os\r\n\r\n",
        )
        assert head.startswith("HTTP/1.1 204")
        assert "access-control-allow-origin: http://localhost:3000\r\n" in head
        allowed = [line for line in head.split("\r\n") if "allow-headers" in line][0]
        assert "authorization" in allowed and "x-stainless-os" in allowed
        assert "POST" in [line for line in head.split("\r\n") if "allow-methods" in line][0]
        answer = keyed.post("/v1/completions", json={}, headers={"origin": "http://localhost:3000"})
        assert answer.status_code == 401
        assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"


class TestBrowsers:
    @pytest.mark.parametrize(
        "host",
        [
            "localhost",
            "localhost:1",
            "127.0.0.1",
            "127.9.9.9:80",
            "[::1]:44468",
            "app.localhost",
            "LOCALHOST",
        ],
    )
    def test_our_own_hosts(self, front, host):
        head, _ = raw_request(front, f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n")
        assert head.startswith("HTTP/1.1 200")

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "localhost.evil.example",
            "192.168.1.5",
            "127.0.0.1.evil.example",
            "evil:44468",
            "user@localhost",
            "[::2]",
        ],
    )
    def test_a_foreign_host_is_refused(self, front, host):
        head, body = raw_request(front, f"GET /health HTTP/1.1\r\nHost: {host}\r\n\r\n")
        assert head.startswith("HTTP/1.1 403")
        assert json.loads(body)["error"]["message"]

    @pytest.mark.parametrize("origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:5"])
    def test_local_pages_may_ask(self, front, origin):
        answer = front.ask("echo", headers={"origin": origin})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == origin

    @pytest.mark.parametrize(
        "origin",
        ["https://evil.example", "null", "http://localhost.evil.example", "file://", "http://192.168.1.5"],
    )
    def test_foreign_pages_may_not(self, front, origin):
        answer = front.ask("echo", headers={"origin": origin})
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers

    def test_a_pages_post_must_be_declared_json(self, front):
        for kind in ["text/plain", "application/x-www-form-urlencoded", ""]:
            answer = front.post(
                "/v1/completions",
                content=b'{"prompt": "echo"}',
                headers={"origin": "http://localhost", "content-type": kind},
            )
            assert answer.status_code == 415, kind
            assert answer.headers["access-control-allow-origin"] == "http://localhost"
        plain = front.post(
            "/v1/completions",
            content=b'{"prompt": "echo"}',
            headers={"content-type": "application/x-www-form-urlencoded"},
        )
        assert plain.status_code == 200  # curl -d

    def test_refusals_of_the_http_layer_carry_cors(self, front):
        head, body = raw_request(
            front,
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
            "Origin: http://localhost\r\nContent-Length: 999999999999\r\n\r\n",
        )
        assert head.startswith("HTTP/1.1 413")
        assert "access-control-allow-origin: http://localhost\r\n" in head
        assert json.loads(body)["error"]["type"] == "invalid_request_error"

    def test_configured_names(self, start):
        server = start(
            "--model-id", "fake", "--allowed-hosts", "bodega.lan", "--cors-origins", "https://page.example"
        )
        head, _ = raw_request(
            server, "GET /health HTTP/1.1\r\nHost: Bodega.lan:80\r\nOrigin: https://page.example\r\n\r\n"
        )
        assert head.startswith("HTTP/1.1 200") and "allow-origin: https://page.example" in head
        head, _ = raw_request(server, "GET /health HTTP/1.1\r\nHost: other.lan\r\n\r\n")
        assert head.startswith("HTTP/1.1 403")
