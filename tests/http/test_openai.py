"""The embedded default model through front and worker, with the client that most people have."""

import concurrent.futures
import json
import os
import signal

import openai
import pytest
from bodega import Server, eventually, post_head

QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
ANSWER = "The capital of France is Paris."
MODEL = "smollm2-135m-instruct"


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("real"), fake=False)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(real):
    return openai.OpenAI(base_url=real.url + "/v1", api_key="none", max_retries=0, timeout=120)


def ask(client, **more):
    return client.chat.completions.create(**{"model": MODEL, "messages": QUESTION, "temperature": 0, **more})


def waiting_or_running(server):
    return server.get("/v1/queue/stats").json()["queue_stats"]["active_requests"]


def test_the_answer_is_right_and_stops(client):
    answer = ask(client)
    choice = answer.choices[0]
    assert choice.message.content == ANSWER
    assert choice.message.role == "assistant"
    assert choice.finish_reason == "stop"
    assert answer.model == MODEL
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 < usage.completion_tokens < 20


def test_streamed_pieces_joined_are_the_whole_answer(client):
    chunks = list(ask(client, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ANSWER
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize("include", [None, False, True])
def test_a_usage_chunk_comes_only_when_asked_for(client, include):
    options = {} if include is None else {"stream_options": {"include_usage": include}}
    chunks = list(ask(client, stream=True, max_tokens=3, **options))
    empty = [chunk for chunk in chunks if not chunk.choices]
    assert len(empty) == (1 if include else 0)
    if include:
        assert empty[0].usage.completion_tokens == 3
    assert all(chunk.usage is None for chunk in chunks if chunk.choices)


def test_a_seed_repeats_and_no_seed_varies(client):
    def text(**more):
        return ask(client, temperature=1.2, max_tokens=24, **more).choices[0].message.content

    assert text(seed=7) == text(seed=7)
    assert len({text() for _ in range(4)}) > 1


def test_completions(client):
    answer = client.completions.create(
        model=MODEL, prompt="The capital of France is", temperature=0, max_tokens=4
    )
    assert "Paris" in answer.choices[0].text
    assert answer.choices[0].finish_reason == "length"


def test_models(client):
    assert [model.id for model in client.models.list()] == [MODEL]
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nope")


def test_errors_are_the_clients_own_types(client):
    with pytest.raises(openai.NotFoundError) as unknown:
        ask(client, model="nope")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as wrong:
        ask(client, temperature=9)
    assert wrong.value.param == "temperature"
    with pytest.raises(openai.BadRequestError):
        ask(client, messages=[])
    assert ask(client, max_tokens=1).choices


def test_null_is_absent(client):
    nothing = {
        name: None
        for name in ["top_p", "n", "stop", "seed", "logit_bias", "max_tokens", "tools", "tool_choice", "user"]
    }
    assert ask(client, **nothing).choices[0].message.content == ANSWER


def test_a_client_that_leaves_frees_its_place(real, client):
    body = json.dumps({"messages": QUESTION, "ignore_eos": True, "max_tokens": 4000, "stream": True})
    leaver = real.raw()
    leaver.send(post_head("/v1/chat/completions", len(body)) + body)
    leaver.read_until(b"data: ")
    assert waiting_or_running(real) == 1
    leaver.reset()
    assert eventually(lambda: waiting_or_running(real) == 0, 5)


def test_many_streams_at_once_say_what_one_says(client):
    def joined(_):
        return "".join(chunk.choices[0].delta.content or "" for chunk in ask(client, stream=True))

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert set(pool.map(joined, range(32))) == {ANSWER}


def test_a_killed_front_leaves_nothing_behind(tmp_path):
    def folders():
        return {name for name in os.listdir("/tmp") if name.startswith("bodega-")}

    before = folders()
    server = Server(tmp_path, fake=False, environment={"TMPDIR": "/tmp"})
    made = folders() - before
    assert made
    server.stop()
    assert eventually(lambda: not made & folders(), 5)


def test_a_killed_worker_under_load_is_told_to_all_and_comes_back(real, client):
    before = real.worker()
    body = json.dumps({"messages": QUESTION, "ignore_eos": True, "max_tokens": 4000, "stream": True})
    streams = [real.raw() for _ in range(16)]
    for stream in streams:
        stream.send(post_head("/v1/chat/completions", len(body)) + body)
    for stream in streams:
        stream.read_until(b"data: ")
    os.kill(before["pid"], signal.SIGKILL)
    for stream in streams:
        text = stream.read_until(b"0\r\n\r\n").decode()
        assert '"error"' in text and "[DONE]" not in text
    with pytest.raises(openai.APIStatusError) as gone:
        ask(client)
    assert gone.value.status_code == 503 and int(gone.value.response.headers["retry-after"]) >= 1
    real.wait_until_ready()
    assert real.worker()["pid"] != before["pid"]
    assert ask(client).choices[0].message.content == ANSWER
    assert waiting_or_running(real) == 0
