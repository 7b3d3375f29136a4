"""GET /openapi.json says what the server knows."""

import pytest
from bodega import Server

MESSAGES = [{"role": "user", "content": "Hi"}]
REQUIRED = {
    "/v1/chat/completions": {"messages": MESSAGES, "max_tokens": 1},
    "/v1/completions": {"prompt": "Hi", "max_tokens": 1},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 1},
    "/v1/messages/count_tokens": {"messages": MESSAGES},
    "/v1/responses": {"input": "Hi", "max_output_tokens": 1},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("openapi"), fake=False)
    yield server
    server.stop()


def properties(server, path):
    post = server.get("/openapi.json").json()["paths"][path]["post"]
    return post["requestBody"]["content"]["application/json"]["schema"]["properties"]


@pytest.mark.parametrize("path", REQUIRED)
def test_every_field_is_known_and_null_is_absent(server, path):
    body = {**dict.fromkeys(properties(server, path)), **REQUIRED[path]}
    answer = server.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert "warnings" not in answer.json()


@pytest.mark.parametrize("path", REQUIRED)
def test_every_field_is_checked(server, path):
    for name in properties(server, path):
        wrong = {} if name == "prompt" else [[7]]  # which is a prompt of token ids
        answer = server.post(path, json={**REQUIRED[path], name: wrong})
        assert answer.status_code == 400, (name, answer.text)
        assert answer.json()["error"]["param"].startswith(name)


def test_every_route_is_there(server):
    for path, methods in server.get("/openapi.json").json()["paths"].items():
        for method in methods:
            answer = server.post(path, json={}) if method == "post" else server.get(path)
            assert answer.status_code in (200, 400), path
