"""Messages in every form become the same flat parts."""

from __future__ import annotations

import json

import pytest

from clawtrace.dialects.messages import FORMATS, Part, parse_messages

CALL = {"city": "Paris"}


def brief(parts: list[Part]) -> list[tuple[str | None, str, str | None, str | None, str | None]]:
    return [(part.role, part.type, part.call_id, part.name, part.text) for part in parts]


ASKED = [("assistant", "tool_call", "c1", "get_weather", '{"city":"Paris"}')]

OUTPUTS = {
    "genai_parts": json.dumps(
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": CALL}]}]
    ),
    "indexed": json.dumps(
        {
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.tool_calls.0.id": "c1",
            "gen_ai.completion.0.tool_calls.0.name": "get_weather",
            "gen_ai.completion.0.tool_calls.0.arguments": '{"city":"Paris"}',
        }
    ),
    "openinference": json.dumps(
        {
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "get_weather",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"city":"Paris"}',
            # The ordered copy of the same call is no second call.
            "llm.output_messages.0.message.contents.0.tool_call.id": "c1",
            "llm.output_messages.0.message.contents.0.tool_call.function.name": "get_weather",
        }
    ),
    "events": json.dumps(
        [
            ["gen_ai.user.message", {"content": "hi"}],
            [
                "gen_ai.choice",
                {
                    "message": json.dumps(
                        {
                            "tool_calls": [
                                {"id": "c1", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
                            ]
                        }
                    )
                },
            ],
        ]
    ),
    "event_list": json.dumps(
        [
            {"event.name": "gen_ai.user.message", "content": "hi", "role": "user"},
            {
                "event.name": "gen_ai.choice",
                "message": {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": CALL}}
                    ],
                },
            },
        ]
    ),
    "blob": json.dumps(
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "c1", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
                        ],
                    }
                }
            ]
        }
    ),
}


@pytest.mark.parametrize("form", sorted(OUTPUTS))
def test_a_tool_call_reads_the_same_in_every_form(form: str) -> None:
    assert brief(parse_messages(form, OUTPUTS[form], "output")) == ASKED


def test_every_form_is_tested() -> None:
    assert set(OUTPUTS) == set(FORMATS)


@pytest.mark.parametrize("key", ["response", "result", "content"])
def test_a_tool_result_is_read_from_each_key_in_use(key: str) -> None:
    """The schema says `response`; the registry's example and pydantic-ai write `result` (dialects.md §1.3)."""
    payload = json.dumps([{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", key: "21 C"}]}])

    assert brief(parse_messages("genai_parts", payload, "input")) == [
        ("tool", "tool_call_response", "c1", None, "21 C")
    ]


def test_anthropic_blocks() -> None:
    payload = json.dumps(
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "get_weather", "input": CALL}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "21 C"}]},
        ]
    )

    assert brief(parse_messages("blob", payload, "input")) == [
        *ASKED,
        ("user", "tool_call_response", "c1", None, "21 C"),
    ]


@pytest.mark.parametrize("form", sorted(FORMATS))
@pytest.mark.parametrize(
    "payload", ['[{"role": "assist', "...[TRUNCATED: original length 90000]", "null", "[[", "7", "[7]"]
)
def test_damaged_messages_are_never_invented(form: str, payload: str) -> None:
    """Truncated or foreign text yields no tool call in any form."""
    assert not [part for part in parse_messages(form, payload, "output") if part.type == "tool_call"]


def test_deep_nesting_is_survived() -> None:
    assert parse_messages("genai_parts", "[" * 100_000, "input") == []
