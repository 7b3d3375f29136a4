"""Renders the templates of tests/golden/text with transformers and writes what it prints.

Needs transformers and jinja2 (not in the project's requirements):
    python scripts/golden/text_templates.py
"""

import datetime
import json
import pathlib

from transformers.utils import chat_template_utils

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/text"
NOW_UNIX_S = 1_709_164_800 + 20 * 3600 + 7 * 60 + 9  # 29 February 2024, 20:07:09 UTC
BOS, EOS = "<s>", "</s>"


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(NOW_UNIX_S, datetime.timezone.utc).replace(tzinfo=None)


chat_template_utils.datetime = FixedClock

SYSTEM = {"role": "system", "content": " Answer in French, with accents: é à ü.\n"}
USER = {"role": "user", "content": "What is <b>2 + 2</b> & 'why'? 日本 🦉\n"}
ASSISTANT = {"role": "assistant", "content": "  It is 4.  "}
THANKS = {"role": "user", "content": "Thanks!"}
CALL = {
    "id": "abc123XYZ",
    "type": "function",
    "function": {"name": "weather", "arguments": {"city": "Zürich", "days": 3, "units": None, "hot": 1.0}},
}
CALLED = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "abc123XYZ", "name": "weather", "content": '{"sky": "<clear>"}'}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Its name"},
                    "days": {"type": "integer", "default": 1},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "units": {"type": ["string", "null"], "enum": ["C", "F"], "default": "C"},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
    },
]
PARTS = {"role": "user", "content": [{"type": "text", "text": " one "}, {"type": "text", "text": "two"}]}
THOUGHT = {"role": "assistant", "content": "Four.", "reasoning_content": "\nseven first\n"}
TAGGED = {"role": "assistant", "content": "<think>\nhmm\n</think>\n\nFour."}

CONVERSATIONS = {
    "one question": {"messages": [USER], "add_generation_prompt": True},
    "system": {"messages": [SYSTEM, USER], "add_generation_prompt": True},
    "no prompt": {"messages": [SYSTEM, USER, ASSISTANT]},
    "three turns": {"messages": [USER, ASSISTANT, THANKS], "add_generation_prompt": True},
    "developer": {
        "messages": [{"role": "developer", "content": "Only KIWI"}, USER],
        "add_generation_prompt": True,
    },
    "two users": {"messages": [USER, THANKS], "add_generation_prompt": True},
    "parts": {"messages": [SYSTEM, PARTS], "add_generation_prompt": True},
    "tools": {"messages": [SYSTEM, USER], "tools": TOOLS, "add_generation_prompt": True},
    "call": {"messages": [USER, CALLED, RESULT], "tools": TOOLS, "add_generation_prompt": True},
    "null content": {
        "messages": [USER, {**CALLED, "content": None}, RESULT, ASSISTANT, THANKS],
        "tools": TOOLS,
    },
    "two calls": {
        "messages": [USER, {**CALLED, "content": "Let me look.", "tool_calls": [CALL, CALL]}, RESULT, RESULT],
        "tools": TOOLS,
        "add_generation_prompt": True,
    },
    "reasoning": {"messages": [USER, THOUGHT, THANKS, THOUGHT], "enable_thinking": True},
    "tagged reasoning": {"messages": [USER, TAGGED, THANKS, TAGGED], "add_generation_prompt": False},
    "no thinking": {"messages": [USER], "add_generation_prompt": True, "enable_thinking": False},
    "reasoning with a call": {
        "messages": [SYSTEM, USER, {**CALLED, "reasoning_content": "look it up"}, RESULT],
        "tools": TOOLS,
        "add_generation_prompt": True,
        "reasoning_effort": "high",
    },
    "date given": {
        "messages": [USER],
        "date_string": "1 Jan 2020",
        "tools_in_user_message": False,
        "tools": TOOLS,
    },
    "empty": {"messages": [], "add_generation_prompt": True},
    "empty content": {"messages": [{"role": "user", "content": ""}], "add_generation_prompt": True},
}

CONSTRUCT_CONTEXT = {
    "messages": [SYSTEM, USER, ASSISTANT, THANKS],
    "text": "hello World",
    "items": [1, 2, 3],
    "user": {"name": "Ann", "age": 41, "tags": ["x", "ü"], "extra": None, "ok": True, "ratio": 1.5},
    "people": [{"name": "Bo", "age": 31}, {"name": "Al", "age": 25, "nick": "A"}, {"name": "Cy", "age": 31}],
}


def render(source, context):
    """What transformers prints, or None where it fails."""
    variables = {"tools": None, "documents": None, "bos_token": BOS, "eos_token": EOS} | context
    try:
        return chat_template_utils._compile_jinja_template(source).render(**variables)
    except Exception as error:  # noqa: BLE001 - any failure of the template counts
        print(f"  fails: {type(error).__name__}: {error}")
        return None


def constructs():
    """Snippets of constructs.txt: one a line; a line that starts a block goes on to the next blank tag."""
    text = (FOLDER / "constructs.txt").read_text()
    return [part.strip("\n") for part in text.split("\n----\n")]


def main():
    rendered = {}
    for path in sorted((FOLDER / "templates").glob("*.jinja")):
        print(path.name)
        source = path.read_text()
        rendered[path.stem] = {name: render(source, context) for name, context in CONVERSATIONS.items()}
    snippets = []
    for source in constructs():
        print(source)
        snippets.append({"source": source, "text": render(source, CONSTRUCT_CONTEXT)})
    golden = {
        "now_unix_s": NOW_UNIX_S,
        "bos_token": BOS,
        "eos_token": EOS,
        "conversations": CONVERSATIONS,
        "rendered": rendered,
        "construct_context": CONSTRUCT_CONTEXT,
        "constructs": snippets,
    }
    text = json.dumps(golden, ensure_ascii=False, indent=1)
    (FOLDER / "templates.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
