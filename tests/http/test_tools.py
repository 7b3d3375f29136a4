"""Tool calls with the real OpenAI client: scripted in every format, and bound by tool_choice."""

import json

import jsonschema
import openai
import pytest
from bodega import ROOT, Server

MODEL = "smollm2-135m-instruct"
GOLDEN = ROOT / "tests/golden/tools"
FORMATS = {path.stem: json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json"))}
# Their control tokens are in no vocabulary but their models' own: they are tested on text.
SCRIPTED = [name for name in FORMATS if name != "harmony"]
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Paris", "Oslo"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
            },
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock", "description": None, "parameters": None}}


def tools_of(golden):
    return [{"type": "function", "function": tool} for tool in golden["tools"]]


def scripts_of(golden):
    return [{"name": str(i), "script": [case["text"]]} for i, case in enumerate(golden["cases"])]


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    running = {}

    def server_for(name):
        if name not in running:
            folder = tmp_path_factory.mktemp(name)
            golden = FORMATS[name]
            (folder / "scripts").write_text("".join(json.dumps(s) + "\n" for s in scripts_of(golden)))
            running[name] = Server(
                folder, "--tool-call-parser", golden["formats"][0], "--scripted-model", folder / "scripts",
                fake=False,
            )  # fmt: skip
        return running[name]

    yield server_for
    for server in running.values():
        server.stop()


def client_of(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=120)


@pytest.fixture(scope="module")
def client(servers):
    return client_of(servers("hermes"))


def ask(client, **more):
    body = {
        "model": MODEL,
        "messages": QUESTION,
        "temperature": 0,
        "max_tokens": 300,
        "tools": [WEATHER],
        **more,
    }
    return client.chat.completions.create(**body)


def calls_of(message):
    return [
        {"name": call.function.name, "arguments": json.loads(call.function.arguments)}
        for call in message.tool_calls or []
    ]


def joined(chunks):
    """Content, calls and finish reason of a stream, and the keys of each call's fragments."""
    content, calls, finish, keys = "", {}, None, []
    for chunk in chunks:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for fragment in choice.delta.tool_calls or []:
                sent = fragment.model_dump(exclude_unset=True)
                keys.append({*sent, *sent["function"]})
                call = calls.setdefault(fragment.index, {"name": "", "arguments": ""})
                call["name"] += fragment.function.name or ""
                call["arguments"] += fragment.function.arguments or ""
    whole = [{**call, "arguments": json.loads(call["arguments"])} for _, call in sorted(calls.items())]
    return content, whole, finish, keys


@pytest.mark.parametrize("name", SCRIPTED)
def test_scripted_calls(servers, name):
    golden, client = FORMATS[name], client_of(servers(name))
    for i, case in enumerate(golden["cases"]):
        if "reasoning" in case:
            continue
        request = {"tools": tools_of(golden), "metadata": {"script": str(i)}}
        wanted = [{"name": call["name"], "arguments": call["arguments"]} for call in case["calls"]]
        choice = ask(client, **request).choices[0]
        assert (choice.message.content or "") == case["content"], case
        assert calls_of(choice.message) == wanted
        assert choice.finish_reason == ("tool_calls" if wanted else "stop")
        content, calls, finish, _ = joined(ask(client, stream=True, **request))
        assert (content, calls, finish) == (case["content"], wanted, choice.finish_reason)


def test_only_the_first_fragment_of_a_call_has_id_type_and_name(client):
    _, calls, _, keys = joined(ask(client, stream=True, metadata={"script": "3"}))
    assert len(calls) == 2
    first, later = (
        {"index", "id", "type", "function", "name", "arguments"},
        {"index", "function", "arguments"},
    )
    assert keys == [first, later, first, later]


def test_content_is_null_where_there_are_only_calls(servers):
    body = {"messages": QUESTION, "tools": [WEATHER], "metadata": {"script": "1"}}
    message = servers("hermes").post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
    assert message["content"] is None and len(message["tool_calls"]) == 1


def test_parallel_calls_can_be_refused(client):
    choice = ask(client, parallel_tool_calls=False, metadata={"script": "3"}).choices[0]
    assert len(choice.message.tool_calls) == 1


def test_without_tools_markup_is_text(client):
    case = FORMATS["hermes"]["cases"][1]
    for more in ({"tools": []}, {"tool_choice": "none"}):
        choice = ask(client, metadata={"script": "1"}, **more).choices[0]
        assert choice.message.content == case["text"]
        assert choice.message.tool_calls is None and choice.finish_reason == "stop"


@pytest.mark.parametrize("name", SCRIPTED)
@pytest.mark.parametrize("temperature", [0, 1])
def test_a_demanded_call_comes_and_fits_its_schema(servers, name, temperature):
    client = client_of(servers(name))
    choice = ask(
        client, tool_choice="required", parallel_tool_calls=False, temperature=temperature, seed=1
    ).choices[0]
    assert choice.finish_reason == "tool_calls", choice
    assert not choice.message.content
    for call in choice.message.tool_calls:
        assert call.function.name == "get_weather"
        jsonschema.validate(json.loads(call.function.arguments), WEATHER["function"]["parameters"])


def test_a_named_call(client):
    choice = ask(
        client, tools=[WEATHER, CLOCK], tool_choice={"type": "function", "function": {"name": "clock"}}
    ).choices[0]
    assert calls_of(choice.message) == [{"name": "clock", "arguments": {}}]
    assert choice.finish_reason == "tool_calls"


def test_parallel_calls_are_demanded_too(client):
    choice = ask(client, tool_choice="required", temperature=1, seed=2, max_tokens=1000).choices[0]
    assert choice.finish_reason == "tool_calls"
    for call in calls_of(choice.message):
        jsonschema.validate(call["arguments"], WEATHER["function"]["parameters"])


def test_strict_arguments_are_bound_once_a_call_is_open(servers):
    strict = json.loads(json.dumps(WEATHER))
    strict["function"]["strict"] = True
    body = {"messages": QUESTION, "tools": [strict], "temperature": 0, "max_tokens": 200,
            "metadata": {"script": "opened"}}  # fmt: skip
    golden = FORMATS["hermes"]
    assert golden["cases"][14]["calls"] == [] and "argu" in golden["cases"][14]["text"]
    body["metadata"]["script"] = "14"  # writes the beginning of a call; the grammar brings it to its end
    choice = servers("hermes").post("/v1/chat/completions", json=body).json()["choices"][0]
    arguments = json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])
    jsonschema.validate(arguments, WEATHER["function"]["parameters"])


def test_a_conversation_with_results_goes_on(client):
    call = {
        "id": "abc",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
    }
    messages = [
        *QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abc", "content": "sunny"},
    ]
    assert ask(client, messages=messages, metadata={"script": "0"}).choices[0].finish_reason == "stop"


def test_tools_reach_a_template_that_knows_none(servers):
    prompt = servers("hermes").post(
        "/apply-template", json={"messages": QUESTION, "tools": [WEATHER]}
    ).json()["prompt"]  # fmt: skip
    assert "get_weather" in prompt and "The weather of a city." in prompt


REFUSED = [
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"tools": [{"type": "web", "function": {"name": "a"}}]}, "tools[0].type"),
    ({"tools": [{"function": {"name": "two words"}}]}, "tools[0].function.name"),
    ({"tools": [CLOCK, CLOCK]}, "tools[1].function.name"),
    ({"tools": "x"}, "tools"),
    ({"tools": [WEATHER], "tool_choice": "maybe"}, "tool_choice"),
    ({"tools": [WEATHER], "tool_choice": {"function": {"name": "nope"}}}, "tool_choice"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"tools": [{"function": {"name": "a", "parameters": {"properties": {"b": {"not": {}}}}}}],
      "tool_choice": "required"}, "tools[0].function.parameters.properties.b.not"),
    ({"tools": [WEATHER], "guided_regex": "a"}, "guided_regex"),
]  # fmt: skip


@pytest.mark.parametrize("body, param", REFUSED)
def test_bad_tools_are_refused(servers, body, param):
    response = servers("hermes").post("/v1/chat/completions", json={"messages": QUESTION, **body})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == param


@pytest.mark.parametrize("body", [{"tools": None}, {"tools": [], "tool_choice": None}, {"tools": [CLOCK]}])
def test_null_is_absent(servers, body):
    body = {"messages": QUESTION, "max_tokens": 1, "metadata": {"script": "0"}, **body}
    assert servers("hermes").post("/v1/chat/completions", json=body).status_code == 200
