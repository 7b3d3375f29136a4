"""POST /v1/messages with the real Anthropic client."""

import json

import anthropic
import pytest
from bodega import ROOT, Server

MODEL = "claude-test"
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
ANSWER = "The capital of France is Paris."
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Oslo"]}},
        "required": ["city"],
    },
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
SCRIPTS = [
    {"name": "call", "script": ["I look.\n", CALL]},
    {"name": "thought", "script": ["<think>", "\nseven first", "\n</think>", "\n\nIt is 42."]},
    {"name": "long", "script": ["one two three four five six"]},
    {"name": "fails", "script": ["one two three"], "fail_after": 2},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("anthropic")
    (folder / "scripts").write_text("".join(json.dumps(script) + "\n" for script in SCRIPTS))
    server = Server(
        folder, "--scripted-model", folder / "scripts", "--model-aliases", "claude-*=smollm2-135m-instruct",
        "--api-keys", "secret", fake=False, wait=False,
    )  # fmt: skip
    server.wait_for_port()
    server.wait_until_ready()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(server):
    return anthropic.Anthropic(base_url=server.url, api_key="secret", max_retries=0, timeout=120)


GREEDY = {"extra_body": {"temperature": 0}}  # the client has no argument for it any more


def ask(client, **more):
    body = {"model": MODEL, "max_tokens": 100, "messages": QUESTION, **more}
    return client.messages.create(**body)


def scripted(name):
    return {"extra_body": {"metadata": {"script": name}}}


def test_a_plain_answer(client):
    message = ask(client, **GREEDY)
    assert message.role == "assistant" and message.type == "message" and message.id.startswith("msg")
    assert [block.text for block in message.content] == [ANSWER]
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens + message.usage.cache_read_input_tokens > 10
    assert message.usage.output_tokens > 5


def test_streamed_the_same(client):
    with client.messages.stream(model=MODEL, max_tokens=100, messages=QUESTION, **GREEDY) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == ANSWER
    assert [block.text for block in final.content] == [ANSWER]
    assert final.stop_reason == "end_turn" and final.usage.output_tokens > 5


def test_the_order_of_events(client):
    events = list(ask(client, stream=True, tools=[WEATHER], **scripted("call")))
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start" and kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2
    starts = [event for event in events if event.type == "content_block_start"]
    assert [start.content_block.type for start in starts] == ["text", "tool_use"]
    assert [start.index for start in starts] == [0, 1]
    pieces = [event.delta.partial_json for event in events
              if event.type == "content_block_delta" and event.delta.type == "input_json_delta"]  # fmt: skip
    assert json.loads("".join(pieces)) == {"city": "Paris"}
    assert events[-2].delta.stop_reason == "tool_use"


def test_tools_and_their_results(client):
    message = ask(client, tools=[WEATHER], **scripted("call"))
    assert message.stop_reason == "tool_use"
    text, call = message.content
    assert text.text == "I look." and call.name == "get_weather" and call.input == {"city": "Paris"}
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]}
    more = [
        *QUESTION,
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": [result]},
    ]
    assert ask(client, tools=[WEATHER], messages=more, **scripted("long")).stop_reason == "end_turn"


@pytest.mark.parametrize(
    "choice", [{"type": "any", "disable_parallel_tool_use": True}, {"type": "tool", "name": "get_weather"}]
)
def test_a_demanded_call(client, choice):
    message = ask(client, tools=[WEATHER], tool_choice=choice, **GREEDY)
    assert message.stop_reason == "tool_use"
    assert [block.type for block in message.content] == ["tool_use"]
    assert message.content[0].input["city"] in ("Paris", "Oslo")


def test_stops(client):
    message = ask(client, stop_sequences=["four"], **scripted("long"))
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "four")
    assert message.content[0].text == "one two three "
    assert ask(client, max_tokens=2, **scripted("long")).stop_reason == "max_tokens"


def test_a_begun_answer_goes_on(client):
    begun = [*QUESTION, {"role": "assistant", "content": "The capital of France"}]
    assert ask(client, messages=begun, **GREEDY).content[0].text == " is Paris."


def test_system_as_text_and_as_blocks(client):
    def count(**more):
        return client.messages.count_tokens(model=MODEL, messages=QUESTION, **more).input_tokens

    assert count(system="Be brief.") == count(system=[{"type": "text", "text": "Be brief."}])
    assert count(tools=[WEATHER]) > count(system="Be brief.")
    message = ask(client, max_tokens=1)
    assert count() == message.usage.input_tokens + message.usage.cache_read_input_tokens


def test_a_failure_inside_a_stream_is_an_error_event(client):
    with pytest.raises(anthropic.APIStatusError):
        list(ask(client, stream=True, **scripted("fails")))


@pytest.mark.parametrize(
    "body, param",
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            "messages[0].content[0].type",
        ),
        ({"temperature": 2}, "temperature"),
        ({"tools": [{"name": "a"}]}, "tools[0].input_schema"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"thinking": {"type": "maybe"}}, "thinking.type"),
    ],
)
def test_mistakes_are_named(server, client, body, param):
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(client, extra_body=body)
    assert caught.value.body["error"]["param"] == param
    assert server.get("/health").json()["status"] == "ok"


def test_a_wrong_key(server):
    stranger = anthropic.Anthropic(base_url=server.url, api_key="guess", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        ask(stranger)


def test_thinking(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thinking")
    (folder / "scripts").write_text("".join(json.dumps(script) + "\n" for script in SCRIPTS))
    template = ROOT / "tests/scenario/templates/thinking.jinja"
    server = Server(
        folder, "--chat-template-file", template, "--scripted-model", folder / "scripts", "--model-id", MODEL,
        fake=False,
    )  # fmt: skip
    try:
        client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
        enabled = {"type": "enabled", "budget_tokens": 1024}
        message = ask(client, max_tokens=2048, thinking=enabled, **scripted("thought"))
        thought, text = message.content
        assert (thought.type, thought.thinking) == ("thinking", "seven first")
        assert text.text == "It is 42."
        events = list(ask(client, max_tokens=2048, thinking=enabled, stream=True, **scripted("thought")))
        assert "".join(event.delta.thinking for event in events
                       if event.type == "content_block_delta" and event.delta.type == "thinking_delta"
                       ) == "seven first"  # fmt: skip
    finally:
        server.stop()
