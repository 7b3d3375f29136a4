"""POST /v1/responses with the real OpenAI client."""

import json

import jsonschema
import openai
import pytest
from bodega import Server

MODEL = "smollm2-135m-instruct"
QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris."
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Oslo"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
SCRIPTS = [
    {"name": "call", "script": ["I look.\n", CALL]},
    {"name": "long", "script": ["one two three four"]},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("responses")
    (folder / "scripts").write_text("".join(json.dumps(script) + "\n" for script in SCRIPTS))
    server = Server(folder, "--scripted-model", folder / "scripts", fake=False)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)


def ask(client, **more):
    return client.responses.create(**{"model": MODEL, "input": QUESTION, "temperature": 0, **more})


def test_a_plain_answer(client):
    response = ask(client)
    assert response.output_text == ANSWER
    assert response.status == "completed" and response.object == "response"
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert [item.type for item in response.output] == ["message"]


def test_streamed_the_same(client):
    events = list(ask(client, stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == ANSWER
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    assert events[-1].response.output_text == ANSWER
    with client.responses.stream(model=MODEL, input=QUESTION, temperature=0) as stream:
        assert stream.get_final_response().output_text == ANSWER


def test_calls_and_their_outputs(client):
    response = ask(client, tools=[WEATHER], metadata={"script": "call"})
    message, call = response.output
    assert message.content[0].text == "I look."
    assert (call.type, call.name, json.loads(call.arguments)) == (
        "function_call",
        "get_weather",
        {"city": "Paris"},
    )
    history = [
        {"role": "user", "content": QUESTION},
        *[item.model_dump(exclude_none=True) for item in response.output],
        {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
    ]
    assert ask(client, input=history, tools=[WEATHER], metadata={"script": "long"}).status == "completed"
    events = [event.type for event in ask(client, tools=[WEATHER], metadata={"script": "call"}, stream=True)]
    assert "response.function_call_arguments.done" in events


def test_a_demanded_call(client):
    response = ask(
        client, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, max_output_tokens=300
    )
    assert [item.type for item in response.output] == ["function_call"]
    assert json.loads(response.output[0].arguments)["city"] in ("Paris", "Oslo")


def test_a_schema(client):
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"],
              "additionalProperties": False}  # fmt: skip
    response = ask(client, text={"format": {"type": "json_schema", "name": "city", "schema": schema}})
    jsonschema.validate(json.loads(response.output_text), schema)


def test_a_cut_answer(client):
    response = ask(client, max_output_tokens=2)
    assert response.status == "incomplete" and response.incomplete_details.reason == "max_output_tokens"


@pytest.mark.parametrize(
    "body, param",
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"store": True}, "store"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
         "input[0].content[0].type"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ],
)  # fmt: skip
def test_mistakes_are_named(server, client, body, param):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, extra_body=body)
    assert caught.value.param == param
    assert server.get("/health").json()["status"] == "ok"
