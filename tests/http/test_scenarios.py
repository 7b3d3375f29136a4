"""Runs tests/scenario/*.json against the real server with a scripted model: requests in, answers out."""

import json
import math

import httpx
import pytest
from bodega import ROOT, Server

FOLDER = ROOT / "tests/scenario"
CHAT = "/v1/chat/completions"
STREAMABLE = (CHAT, "/chat/completions", "/v1/completions")
KNOWN = {
    "status", "error", "content", "reasoning", "finish", "usage", "fields", "contains", "lacks", "deltas",
    "usage_chunks", "stream_error", "logprobs",
}  # fmt: skip
PLAIN_QUESTION = {
    "messages": [{"role": "user", "content": "What is the capital of France?"}],
    "temperature": 0,
}


def load(path):
    scenario = json.loads(path.read_text())
    for step in scenario["steps"]:
        unknown = set(step.get("expect", {})) - KNOWN
        assert not unknown, f"{path.name}: {unknown} is no expectation"
    return scenario


SCENARIOS = {path.stem: load(path) for path in sorted(FOLDER.glob("*.json"))}


def strict_json(text):
    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """One server for all scenarios that want the same flags."""
    scripts = tmp_path_factory.mktemp("scripts") / "scripts.jsonl"
    with open(scripts, "w") as file:
        for scenario in SCENARIOS.values():
            for name, script in scenario.get("scripts", {}).items():
                file.write(json.dumps({"name": name, **script}, ensure_ascii=False) + "\n")
    running = {}

    def server_for(flags):
        flags = tuple(flag.replace("$SCENARIO", str(FOLDER)) for flag in flags)
        if flags not in running:
            folder = tmp_path_factory.mktemp("server")
            running[flags] = Server(folder, *flags, "--scripted-model", str(scripts), fake=False)
        return running[flags]

    yield server_for
    for server in running.values():
        server.stop()


def post(server, step, body):
    path = step.get("path", CHAT)
    if "raw" in step:
        content = step["raw"].encode("latin-1")
    else:
        content = json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    return httpx.request(
        step.get("method", "POST"), server.url + path, content=content, headers=headers, timeout=120
    )


# --- what an answer says, in one shape for both ways ------------------------------------------------


class Answer:
    """content, finish and logprobs by choice; usage; `error` where a stream ended with one."""

    def __init__(self, text):
        self.text = text
        self.content, self.reasoning, self.finish, self.logprobs = {}, {}, {}, {}
        self.usage = self.error = None
        self.deltas = []
        self.usage_chunks = 0

    def add(self, choice):
        index = choice["index"]
        said = choice.get("message") or choice.get("delta") or {"content": choice.get("text")}
        self.content[index] = self.content.get(index, "") + (said.get("content") or "")
        self.reasoning[index] = self.reasoning.get(index, "") + (said.get("reasoning_content") or "")
        self.finish[index] = choice["finish_reason"] or self.finish.get(index)
        if choice.get("logprobs"):
            entries = choice["logprobs"].get("content") or choice["logprobs"].get("token_logprobs") or []
            self.logprobs.setdefault(index, []).extend(entries)


def read_whole(response):
    answer = Answer(response.text)
    body = strict_json(response.text)
    for choice in body["choices"]:
        answer.add(choice)
    answer.usage = body["usage"]
    assert "timings" in body
    return answer


def events(text):
    """The payloads of a stream whose every line is data, a comment or blank."""
    assert text.endswith("\n\n")
    for line in text.split("\n"):
        assert line == "" or line.startswith((":", "data: ")), line
        if line.startswith("data: "):
            yield line[len("data: ") :]


def read_stream(response):
    assert response.headers["content-type"].startswith("text/event-stream")
    answer = Answer(response.text)
    payloads = list(events(response.text))
    objects = [strict_json(payload) for payload in payloads if payload != "[DONE]"]
    for chunk in objects:
        if "error" in chunk:
            answer.error = chunk["error"]
            continue
        answer.usage_chunks += chunk["choices"] == []
        answer.usage = chunk.get("usage") or answer.usage
        for choice in chunk["choices"]:
            if "delta" in choice:
                answer.deltas.append(choice["delta"])
            answer.add(choice)
    check_form(payloads, objects, answer)
    return answer


def check_form(payloads, objects, answer):
    assert payloads.count("[DONE]") == (0 if answer.error else 1)
    if not answer.error:
        assert payloads[-1] == "[DONE]"
    assert len({chunk["id"] for chunk in objects if "id" in chunk}) == 1
    for index in answer.content:
        deltas = [
            choice["delta"]
            for chunk in objects
            for choice in chunk.get("choices", [])
            if choice["index"] == index and "delta" in choice
        ]
        if deltas:
            assert [delta.get("role") for delta in deltas] == ["assistant"] + [None] * (len(deltas) - 1)


# --- expectations -----------------------------------------------------------------------------------


def check_error(error, wanted):
    for name, value in wanted.items():
        if name == "message":
            assert value in error["message"]
        else:
            assert error[name] == value, error
    assert set(error) == {"message", "type", "param", "code"}


def check_logprobs(answer, wanted):
    for entries in answer.logprobs.values():
        for entry in entries:
            if entry is None or isinstance(entry, (int, float)):
                continue
            assert len(entry["top_logprobs"]) == wanted["top"]
            for item in [entry, *entry["top_logprobs"]]:
                assert math.isfinite(item["logprob"]) and item["logprob"] <= 0
                assert set(item) >= {"token", "logprob", "bytes"}
    assert answer.logprobs or wanted["top"] is None


def check_answer(answer, expect):
    content = [answer.content[index] for index in sorted(answer.content)]
    finish = [answer.finish[index] for index in sorted(answer.finish)]
    if "content" in expect:
        assert content == expect["content"]
    if "reasoning" in expect:
        assert [answer.reasoning[index] for index in sorted(answer.reasoning)] == expect["reasoning"]
    if "finish" in expect:
        assert finish == expect["finish"]
    for name, value in expect.get("usage", {}).items():
        assert answer.usage[name] == value
    if "logprobs" in expect:
        check_logprobs(answer, expect["logprobs"])
    check_text(answer.text, expect)


def check_text(text, expect):
    for part in expect.get("contains", []):
        assert part in text
    for part in expect.get("lacks", []):
        assert part not in text


def value_at(body, path):
    for key in path.split("."):
        body = body[int(key)] if isinstance(body, list) else body[key]
    return body


def check_plain(response, expect):
    """An answer that is no completion: an error, or one of the text routes."""
    body = strict_json(response.text)
    if "error" in expect:
        check_error(body["error"], expect["error"])
    for path, value in expect.get("fields", {}).items():
        assert value_at(body, path) == value, path
    check_text(response.text, expect)


def run_streamed(server, step, expect):
    response = post(server, step, {**step["body"], "stream": True})
    assert response.status_code == 200, response.text
    answer = read_stream(response)
    check_answer(answer, {name: value for name, value in expect.items() if name != "usage"})
    if "deltas" in expect:
        assert answer.deltas == expect["deltas"]
    if "usage_chunks" in expect:
        assert answer.usage_chunks == expect["usage_chunks"]
    if "stream_error" in expect:
        check_error(answer.error, expect["stream_error"])
    else:
        assert answer.error is None
    return answer


def run_step(server, step):
    expect = step.get("expect", {})
    status = expect.get("status", 200)
    answers = step.get("path", CHAT) in STREAMABLE and status == 200 and "raw" not in step
    if not answers or "fields" in expect:
        response = post(server, step, step.get("body"))
        assert response.status_code == status, response.text
        return check_plain(response, expect)
    streamed = run_streamed(server, step, expect)
    if "stream_error" in expect:
        return None
    response = post(server, step, step["body"])
    assert response.status_code == 200, response.text
    whole = read_whole(response)
    check_answer(whole, expect)
    if "metadata" in step["body"] or step["body"].get("temperature") == 0:
        assert streamed.content == whole.content and streamed.finish == whole.finish
        assert streamed.logprobs == whole.logprobs
    return None


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(servers, name):
    scenario = SCENARIOS[name]
    server = servers(scenario.get("server", []))
    for step in scenario["steps"]:
        run_step(server, step)
    # Whatever came before, a plain question is answered and the server says that it is well.
    if not scenario.get("server"):
        run_step(server, {"body": PLAIN_QUESTION, "expect": {"content": ["The capital of France is Paris."]}})
    assert server.get("/health").json()["status"] == "ok"
