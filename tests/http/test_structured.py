"""Answers bound to a schema, a regular expression, a choice or a grammar, from the default model."""

import concurrent.futures
import json
import re
import time
import typing

import httpx
import jsonschema
import openai
import pydantic
import pytest
from bodega import ROOT, Server

MODEL = "smollm2-135m-instruct"
QUESTION = [{"role": "user", "content": "Describe a cat."}]
CAT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 30},
        "colour": {"enum": ["black", "white", "red"]},
        "tame": {"type": "boolean"},
    },
    "required": ["name", "age", "colour", "tame"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("real"), fake=False)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def client(real):
    return openai.OpenAI(base_url=real.url + "/v1", api_key="none", max_retries=0, timeout=120)


def ask(client, **more):
    body = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 200, **more}
    return client.chat.completions.create(**body)


def schema_format(schema, **more):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **more}}


SCHEMAS = [
    CAT,
    {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 9}, "minItems": 2, "maxItems": 4},
    {"anyOf": [{"type": "boolean"}, {"const": "unknown"}]},
    {
        "$defs": {"point": {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"],
                            "additionalProperties": False}},
        "type": "object",
        "properties": {"from": {"$ref": "#/$defs/point"}},
        "required": ["from"],
        "additionalProperties": False,
    },
    {"type": "string", "pattern": "^[a-z]{3,8}$"},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("temperature", [0, 1])
def test_the_answer_is_an_instance(client, schema, temperature):
    more = {"response_format": schema_format(schema, strict=True), "temperature": temperature, "seed": 5}
    answer = ask(client, **more)
    assert answer.choices[0].finish_reason == "stop"
    jsonschema.validate(json.loads(answer.choices[0].message.content), schema)
    pieces = [chunk.choices[0].delta.content or "" for chunk in ask(client, stream=True, **more)]
    assert "".join(pieces) == answer.choices[0].message.content


def test_the_clients_own_parse_helper(client):
    class Cat(pydantic.BaseModel):
        name: typing.Literal["Tom", "Mia"]
        age: int = pydantic.Field(ge=0, le=30)

    parsed = client.chat.completions.parse(
        model=MODEL, messages=QUESTION, response_format=Cat, temperature=0, max_tokens=200
    )
    assert isinstance(parsed.choices[0].message.parsed, Cat)


def test_json_mode_writes_an_object_without_runs_of_blanks(client):
    content = ask(client, response_format={"type": "json_object"}).choices[0].message.content
    assert content.startswith("{")
    assert not re.search(r"[ \t\r\n]{15}", content)


@pytest.mark.parametrize(
    "body, pattern",
    [
        ({"guided_regex": "[0-9]{3}-[0-9]{2}"}, "[0-9]{3}-[0-9]{2}"),
        ({"structured_outputs": {"regex": "(yes|no)!"}}, "(yes|no)!"),
        ({"guided_choice": ["red", "gr\u00fcn", 'a "b"']}, 'red|gr\u00fcn|a "b"'),
        ({"structured_outputs": {"choice": ["one"]}}, "one"),
        ({"guided_grammar": 'start: "x" DIGIT "y"\nDIGIT: /[0-9]/\n'}, "x[0-9]y"),
        ({"guided_json": {"type": "boolean"}}, "true|false"),
        ({"guided_json": '{"type": "boolean"}'}, "true|false"),
        ({"structured_outputs": {"json_object": True}}, r"(?s)\{.*"),
    ],
)
def test_other_ways_to_bind(client, body, pattern):
    content = ask(client, extra_body=body).choices[0].message.content
    assert re.fullmatch(pattern, content), content
    text = (
        client.completions.create(model=MODEL, prompt="It is", max_tokens=50, temperature=0, extra_body=body)
        .choices[0]
        .text
    )
    assert re.fullmatch(pattern, text), text


def test_choices_of_one_request_differ_and_all_fit(client):
    answer = ask(client, n=4, temperature=1, seed=3, response_format=schema_format(CAT))
    texts = [choice.message.content for choice in answer.choices]
    for text in texts:
        jsonschema.validate(json.loads(text), CAT)
    assert len(set(texts)) > 1


def test_logprobs_are_finite_and_one_a_token(client):
    answer = ask(
        client, response_format=schema_format({"type": "boolean"}), logprobs=True, top_logprobs=20,
        extra_body={"return_token_ids": True},
    )  # fmt: skip
    entries = answer.choices[0].logprobs.content
    assert len(entries) == len(answer.choices[0].token_ids)
    assert all(-10000 < entry.logprob <= 0 for entry in entries)


def test_a_stop_string_ends_it_too(client):
    answer = ask(client, extra_body={"guided_regex": "a{20}b"}, stop=["aaaaa"])
    assert answer.choices[0].message.content == ""
    assert answer.choices[0].finish_reason == "stop"


def test_the_budget_cuts_it(client):
    answer = ask(client, extra_body={"guided_regex": "a{2000}"}, max_tokens=5)
    assert answer.choices[0].finish_reason == "length"


def test_others_are_free_and_the_same_as_alone(client):
    def free():
        return ask(client).choices[0].message.content

    def bound(_):
        return ask(client, response_format=schema_format(CAT)).choices[0].message.content

    alone, bound_alone = free(), bound(0)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        bounds = [pool.submit(bound, i) for i in range(8)]
        frees = [pool.submit(free) for _ in range(8)]
        assert {future.result() for future in frees} == {alone}
        assert {future.result() for future in bounds} == {bound_alone}


def many_groups(count):
    return "(" * count + "a" + ")" * count


REFUSED = [
    ({"response_format": schema_format({"properties": {"a": {"not": {}}}})},
     "response_format.json_schema.schema.properties.a.not"),
    ({"response_format": schema_format({"type": "array", "uniqueItems": True})},
     "response_format.json_schema.schema.uniqueItems"),
    ({"response_format": schema_format({"type": "string", "pattern": "^*z$"})},
     "response_format.json_schema.schema.pattern"),
    ({"response_format": schema_format({"type": "string", "pattern": "^{3}z$"})},
     "response_format.json_schema.schema.pattern"),
    ({"response_format": {"type": "xml"}}, "response_format.type"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
     "response_format.json_schema.schema"),
    ({"guided_regex": "(a"}, "guided_regex"),
    ({"guided_regex": many_groups(50000)}, "guided_regex"),
    ({"guided_grammar": "start: " + many_groups(50000)}, "guided_grammar"),
    ({"guided_grammar": "root ::= 1"}, "guided_grammar"),
    ({"guided_choice": []}, "guided_choice"),
    ({"guided_choice": ["a", 7]}, "guided_choice[1]"),
    ({"guided_regex": "a", "guided_choice": ["a"]}, "guided_choice"),
    ({"structured_outputs": {"regex": 7}}, "structured_outputs.regex"),
]  # fmt: skip


@pytest.mark.parametrize("body, param", REFUSED)
@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_bound_is_refused_by_its_place(real, body, param, stream):
    response = real.post(
        "/v1/chat/completions", json={"messages": QUESTION, "max_tokens": 5, "stream": stream, **body}
    )
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == param
    assert real.get("/health").json()["status"] == "ok"


def nested_one_of(depth):
    if depth == 0:
        return {"type": "string"}
    inner = nested_one_of(depth - 1)
    return {"oneOf": [inner, {"type": "object", "properties": {f"k{depth}": inner}}]}


def test_a_costly_schema_slows_nobody(real, client):
    ask(client, max_tokens=4)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        costly = [
            pool.submit(
                httpx.post,
                real.url + "/v1/chat/completions",
                json={"messages": QUESTION, "max_tokens": 5,
                      "response_format": schema_format({**nested_one_of(10), "title": str(i)})},
                timeout=120,
            )
            for i in range(4)
        ]  # fmt: skip
        begun = time.monotonic()
        assert real.get("/health").status_code == 200
        ask(client, max_tokens=4)
        took = time.monotonic() - begun
        assert all(future.result().status_code in (200, 400) for future in costly)
    assert took < 10


@pytest.fixture(scope="module")
def thinking(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thinking")
    scripts = [
        {"name": "opens", "script": ["<think>", "\nseven {", "\n</think>", "\n\n", "It is"]},
        {"name": "opened", "script": ["seven ", "first", "</think>", "It is"]},
        {"name": "at once", "script": ["It is"]},
        {"name": "ends early", "script": ["<think>", "seven"]},
        {"name": "long", "script": ["<think>", *["more "] * 50, "</think>", "Done."]},
    ]
    (folder / "scripts").write_text("".join(json.dumps(script) + "\n" for script in scripts))
    template = ROOT / "tests/scenario/templates/thinking.jinja"
    server = Server(
        folder, "--chat-template-file", template, "--scripted-model", folder / "scripts", fake=False
    )
    yield server
    server.stop()


@pytest.mark.parametrize("script, kwargs", [("opens", {}), ("opened", {"open": True}), ("at once", {})])
def test_the_grammar_binds_after_the_thought(thinking, script, kwargs):
    body = {
        "messages": QUESTION, "metadata": {"script": script}, "chat_template_kwargs": kwargs,
        "response_format": schema_format(CAT), "max_tokens": 300, "temperature": 0,
    }  # fmt: skip
    message = thinking.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
    jsonschema.validate(json.loads(message["content"]), CAT)
    assert message.get("reasoning_content", "").startswith("" if script == "at once" else "seven")


def test_a_thought_ends_with_its_budget(thinking):
    body = {"messages": QUESTION, "metadata": {"script": "long"}, "max_reasoning_tokens": 10,
            "temperature": 0, "max_tokens": 40}  # fmt: skip
    answer = thinking.post("/v1/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["reasoning_content"].count("more") <= 10
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 20
    free = thinking.post("/v1/chat/completions", json={**body, "max_reasoning_tokens": 1000}).json()
    assert free["choices"][0]["message"]["reasoning_content"].count("more") > 10
