"""Messages in every form become the same flat parts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clawtrace.dialects import message_parts
from clawtrace.dialects.message_parts import Part
from clawtrace.dialects.messages import FORMATS, parse_messages

CALL = {"city": "Paris"}


def brief(parts: list[Part]) -> list[tuple[str | None, str, str | None, str | None, str | None]]:
    return [(part.role, part.type, part.call_id, part.name, part.text) for part in parts]


ASKED = [("assistant", "tool_call", "c1", "get_weather", '{"city":"Paris"}')]

REPRESENTED = (
    """ToolCall(arguments='{"city":"Paris"}', call_id='c1', name='get_weather', type='function_call', caller=None)"""
)

OUTPUTS = {
    "genai_parts": json.dumps(
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": CALL}]}]
    ),
    "genai_chunks": json.dumps(
        [
            {"role": "assistant", "parts": [{"functionCall": {"id": "c1", "name": "get_weather", "args": CALL}}]},
            {"role": "assistant", "parts": [{"text": ""}]},
        ]
    ),
    "genai_streamed": json.dumps(
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": CALL}]}]
    ),
    "genai_reprs": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": REPRESENTED}]}]),
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
    "langchain": json.dumps(
        {
            "generations": [
                [
                    {
                        "text": "",
                        "message": {
                            "id": ["langchain", "schema", "messages", "AIMessage"],
                            "kwargs": {
                                "type": "ai",
                                # Anthropic's blocks repeat the call.
                                "content": [{"type": "tool_use", "id": "c1", "name": "get_weather", "input": CALL}],
                                "tool_calls": [{"name": "get_weather", "args": CALL, "id": "c1"}],
                            },
                        },
                    }
                ]
            ]
        }
    ),
    "ai_sdk": json.dumps(
        {
            "ai.response.text": "",
            "ai.response.toolCalls": json.dumps([{"toolCallId": "c1", "toolName": "get_weather", "input": CALL}]),
        }
    ),
    "listed_calls": json.dumps(
        {
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.args": '{"city":"Paris"}',
        }
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
    "haystack_messages": json.dumps(
        {
            "replies": [
                "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[ToolCall(tool_name='get_weather', "
                "arguments={'city': 'Paris'}, id='c1', extra=None)], _name=None, _meta={'index': 0})"
            ]
        }
    ),
    "haystack_history": json.dumps(
        {
            "messages": [
                "ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[ToolCall(tool_name='get_weather', "
                "arguments={'city': 'Paris'}, id='c1', extra=None)], _name=None, _meta={})"
            ],
            "step_count": 1,
            "tool_call_counts": {"get_weather": 0},
        }
    ),
    "smolagents_history": json.dumps(
        [
            {
                "role": "MessageRole.ASSISTANT",
                "parts": [
                    {
                        "type": "text",
                        "content": "Calling tools:\n[{'id': 'c1', 'type': 'function', "
                        "'function': {'name': 'get_weather', 'arguments': {'city': 'Paris'}}}]",
                    }
                ],
            }
        ]
    ),
    "crewai_history": "[TaskOutput(raw='', messages=[{'role': 'assistant', 'content': '', 'tool_calls': [{'id': 'c1', "
    "'type': 'function', 'function': {'name': 'get_weather', 'arguments': '{\"city\":\"Paris\"}'}}]}])]",
}


@pytest.mark.parametrize("form", sorted(OUTPUTS))
def test_a_tool_call_reads_the_same_in_every_form(form: str) -> None:
    assert brief(parse_messages(form, OUTPUTS[form], "output")) == ASKED


def test_the_representation_of_a_message_is_its_tool_calls() -> None:
    """It was taken for the final answer."""
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
    text = repr({"content": None, "role": "assistant", "tool_calls": [call]})
    payload = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])

    assert brief(parse_messages("genai_reprs", payload, "output")) == ASKED


def test_names_of_tools_in_one_attribute_are_calls_of_ax_only() -> None:
    """An attribute of another instrumentation that has this name may mean anything, such as the tools that were offered."""
    payload = json.dumps([["gen_ai.choice", {"finish_reason": "function_call", "tool_names": "get_weather,pay"}]])
    asked = {form: [part.name for part in parse_messages(form, payload, "output")] for form in ("ax_events", "events")}

    assert asked["ax_events"] == ["get_weather", "pay"]
    assert "pay" not in asked["events"]


@pytest.mark.parametrize(
    ("part", "failed"),
    [
        ({"tool_call_result": {"result": "no", "origin": {"tool_name": "pay", "id": "c1"}, "error": True}}, True),
        ({"tool_call_result": {"result": "yes", "origin": {"tool_name": "pay", "id": "c1"}, "error": False}}, False),
        ({"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}, True),
        ({"type": "tool_result", "tool_use_id": "c1", "content": "Error: it says so in prose only"}, None),
        ({"toolResult": {"toolUseId": "c1", "content": [{"text": "no"}], "status": "error"}}, True),
        ({"toolResult": {"toolUseId": "c1", "content": [{"text": "yes"}], "status": "success"}}, False),
        ({"type": "function_call_output", "call_id": "c1", "output": "said", "status": "completed"}, None),
        ({"type": "tool_result", "tool_use_id": "c1", "content": "said", "error": "a text is no flag"}, None),
    ],
)
def test_a_result_says_in_a_field_that_the_tool_failed(part: dict[str, object], failed: bool | None) -> None:
    (found,) = parse_messages("blob", json.dumps({"messages": [{"role": "tool", "content": [part]}]}), "input")

    assert (found.type, found.call_id, found.failed) == ("tool_call_response", "c1", failed)


def test_every_form_is_tested() -> None:
    """`ax_events` has no id and no arguments, and a test of its own."""
    assert {*OUTPUTS, "ax_events"} == set(FORMATS)


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


VENDORS = {
    "Anthropic": {
        "content": [{"type": "tool_use", "id": "c1", "name": "get_weather", "input": CALL}],
    },
    "Bedrock": {"content": [{"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": CALL}}]},
    "Strands": {"content": [{"type": "toolUse", "toolUseId": "c1", "name": "get_weather", "input": CALL}]},
    "Gemini": {"parts": [{"function_call": {"id": "c1", "name": "get_weather", "args": CALL}}]},
    "Gemini's REST": {"parts": [{"functionCall": {"id": "c1", "name": "get_weather", "args": CALL}}]},
    "Genkit": {"content": [{"toolRequest": {"ref": "c1", "name": "get_weather", "input": CALL}}]},
    "Vercel": {"content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "get_weather", "args": CALL}]},
    "OpenAI": {"tool_calls": [{"id": "c1", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}]},
    "Langtrace": {
        "content": [
            {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
        ]
    },
    "OpenAI Responses": {
        "type": "function_call", "id": "fc_9", "call_id": "c1", "name": "get_weather", "arguments": '{"city":"Paris"}'
    },
}  # fmt: skip

RESULTS = {
    "Anthropic": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "21 C"}]},
    "Bedrock": {
        "role": "tool",
        "content": [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "21 C"}]}}],
    },
    "Gemini": {"role": "user", "parts": [{"function_response": {"id": "c1", "name": "x", "response": "21 C"}}]},
    "Vercel": {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "21 C"}}],
    },
    "OpenAI": {"role": "tool", "tool_call_id": "c1", "content": "21 C"},
    "OpenAI Responses": {"type": "function_call_output", "call_id": "c1", "output": "21 C"},
}


@pytest.mark.parametrize("vendor", sorted(VENDORS))
def test_a_call_reads_the_same_whatever_vendors_words_it_stands_in(vendor: str) -> None:
    payload = json.dumps([{"role": "assistant", **VENDORS[vendor]}])

    assert brief(parse_messages("blob", payload, "output")) == ASKED


def test_a_whole_response_in_a_list_is_read_as_the_response_alone() -> None:
    """An agent's SDK wraps the answer of another API as one response, and its instrumentation puts that into a list."""
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "21 C"}]}
    response = {"object": "response", "output": [message]}
    alone, listed = (brief(parse_messages("blob", json.dumps(one), "output")) for one in (response, [response]))

    assert listed == alone == [("assistant", "text", None, None, "21 C")]


@pytest.mark.parametrize("vendor", sorted(RESULTS))
def test_a_result_reads_the_same_whatever_vendors_words_it_stands_in(vendor: str) -> None:
    parts = parse_messages("blob", json.dumps({"messages": [RESULTS[vendor]]}), "input")

    assert [(part.type, part.call_id, part.text) for part in parts] == [("tool_call_response", "c1", "21 C")]


def test_a_vercel_prompt_in_every_place() -> None:
    """The inner span has `ai.prompt.messages`, the outer one `ai.prompt` with the system's words next to it."""
    messages = [{"role": "user", "content": "hi"}]
    inner = {"ai.prompt.messages": json.dumps(messages), "ai.prompt.tools": "[]"}
    outer = {"ai.prompt": json.dumps({"system": "be kind", "messages": messages})}

    assert brief(parse_messages("ai_sdk", json.dumps(inner), "input")) == [("user", "text", None, None, "hi")]
    assert brief(parse_messages("ai_sdk", json.dumps(outer), "input")) == [
        ("system", "text", None, None, "be kind"),
        ("user", "text", None, None, "hi"),
    ]


def test_an_events_body_in_one_attribute() -> None:
    """Azure AI Inference writes the whole body of a message event as JSON into one attribute."""
    body = json.dumps({"message": json.loads(OUTPUTS["blob"])["choices"][0]["message"]})
    events = json.dumps([["gen_ai.choice", {"gen_ai.system": "az.ai.inference", "gen_ai.event.content": body}]])

    assert brief(parse_messages("events", events, "output")) == ASKED


@pytest.mark.parametrize("form", sorted(FORMATS))
@pytest.mark.parametrize(
    "payload", ['[{"role": "assist', "...[TRUNCATED: original length 90000]", "null", "[[", "7", "[7]"]
)
def test_damaged_messages_are_never_invented(form: str, payload: str) -> None:
    """Truncated or foreign text yields no tool call in any form."""
    assert not [part for part in parse_messages(form, payload, "output") if part.type == "tool_call"]


WORDS = [
    "messages", "generations", "message", "role", "content", "contents", "parts", "tool_calls", "tool_call", "function", "name",
    "id", "type", "kwargs", "data", "arguments", "choices", "output", "input", "llm.output_messages.0.message.tool_calls.0", "0",
]  # fmt: skip
SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from([*WORDS, "assistant", "", "{}", "[[]]"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@given(SHAPES, st.sampled_from(["input", "output"]))
@settings(max_examples=200, deadline=None)
@example({"generations": [[]]}, "output")
@example({"messages": [[]]}, "input")
def test_no_shape_of_json_is_an_error(shape: object, direction: str) -> None:
    """An empty list of generations once ended the evaluation of all runs."""
    for form in FORMATS:
        parse_messages(form, json.dumps(shape), direction)


def test_deep_nesting_is_survived() -> None:
    assert parse_messages("genai_parts", "[" * 100_000, "input") == []


def test_langchains_conversations() -> None:
    """Messages stand in lists of lists, as constructors, dumps or pairs; a tool's message answers its call."""
    inputs = {
        "messages": [
            [
                {
                    "id": ["langchain", "schema", "messages", "HumanMessage"],
                    "kwargs": {"type": "human", "content": "hi"},
                },
                {"type": "tool", "data": {"type": "tool", "content": "21 C", "tool_call_id": "c1"}},
            ]
        ]
    }

    assert brief(parse_messages("langchain", json.dumps(inputs), "input")) == [
        ("user", "text", None, None, "hi"),
        ("tool", "tool_call_response", "c1", None, "21 C"),
    ]
    pairs = json.dumps({"messages": [["human", "hi"]]})
    assert brief(parse_messages("langchain", pairs, "input")) == [("user", "text", None, None, "hi")]


def test_calls_and_results_next_to_the_parts_of_a_message() -> None:
    """LiteLLM writes GenAI's parts and leaves OpenAI's words next to them."""
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}
    said = [
        {"role": "assistant", "parts": [], "tool_calls": [call]},
        {"role": "tool", "parts": [{"type": "text", "content": "21 C"}], "tool_call_id": "c1"},
    ]

    assert brief(parse_messages("genai_parts", json.dumps(said), "input")) == [
        *ASKED,
        ("tool", "tool_call_response", "c1", None, "21 C"),
    ]


def test_a_call_that_blocks_and_tool_calls_both_tell_of_is_one() -> None:
    """LangChain keeps Anthropic's blocks next to its own list of calls."""
    block = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": CALL}
    call = {"type": "tool_call", "id": "c1", "name": "get_weather", "args": CALL}
    answer = {"role": "assistant", "content": [block], "tool_calls": [call]}

    assert brief(parse_messages("blob", json.dumps(answer), "output")) == ASKED


def test_two_calls_of_openinference_with_one_id_are_two() -> None:
    """Some models give each call of an answer the same id; only a call in `contents` repeats one of `tool_calls`."""
    call = {f"message.tool_calls.{n}.tool_call.id": "call_0" for n in (0, 1)}
    call |= {f"message.tool_calls.{n}.tool_call.function.name": name for n, name in enumerate(("get_a", "get_b"))}
    call |= {"message.contents.0.tool_call.id": "call_0", "message.contents.0.tool_call.function.name": "get_a"}
    payload = json.dumps(
        {f"llm.output_messages.0.{key}": value for key, value in {"message.role": "assistant", **call}.items()}
    )

    assert [part.name for part in parse_messages("openinference", payload, "output")] == ["get_a", "get_b"]


def test_haystacks_parts_are_distinguished_by_their_key() -> None:
    """A result repeats the call that it answers."""
    call = {"tool_name": "get_weather", "arguments": CALL, "id": "c1", "extra": None}
    asked = {
        "role": "assistant",
        "meta": {},
        "name": None,
        "content": [{"reasoning": {"reasoning_text": "hm"}}, {"tool_call": call}],
    }
    answered = {
        "role": "tool",
        "content": [{"tool_call_result": {"result": "21 degrees", "origin": call, "error": False}}],
    }

    assert brief(parse_messages("blob", json.dumps({"replies": [asked]}), "output")) == [
        ("assistant", "reasoning", None, None, "hm"),
        *ASKED,
    ]
    assert brief(parse_messages("blob", json.dumps({"messages": [answered]}), "input")) == [
        ("tool", "tool_call_response", "c1", "get_weather", "21 degrees")
    ]


@pytest.mark.parametrize("odd", ["²", "9" * 5_000, "١"])
def test_a_key_that_only_looks_like_a_place_hides_no_message(odd: str):
    """A digit of another script, or of more places than any list has, is passed over; the others are read."""
    asked = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "hi", f"gen_ai.prompt.{odd}.content": "no"}
    calls = {
        "gen_ai.prompt.0.tool_calls.0.name": "get",
        f"gen_ai.prompt.0.tool_calls.{odd}.name": "no",
    }
    parts = parse_messages("indexed", json.dumps(asked | calls), "input")

    assert [(part.type, part.name, part.text) for part in parts] == [("text", None, "hi"), ("tool_call", "get", None)]


def test_a_message_that_is_sent_again_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of a conversation sends what was said before; what stands in it differs by a number's type at least."""
    read = []
    piece_of = message_parts.piece_of
    monkeypatch.setattr(message_parts, "piece_of", lambda part: read.append(part) or piece_of(part))
    said = [
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": f"once_{n}", "name": "look", "arguments": {"n": n}}],
        }
        for n in (1, 1.0, True)
    ]

    parsed = [parse_messages("genai_parts", json.dumps(said[:many]), "input") for many in (1, 2, 3)]

    assert len(read) == 3
    assert [part.text for part in parsed[-1]] == ['{"n":1}', '{"n":1.0}', '{"n":true}']
    assert parsed[0] == parsed[-1][:1]


def test_an_assistants_message_with_the_id_of_a_call_is_that_call() -> None:
    """Where its text is an object with a name and arguments."""
    call = {
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": json.dumps({"name": "get_weather", "arguments": '{"city":"Paris"}'}),
    }
    said = {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": '{"city": "Paris"}'}

    assert (
        brief(parse_messages("indexed", json.dumps(call | {"gen_ai.completion.0.tool_call_id": "c1"}), "output"))
        == ASKED
    )
    for other in (call, said | {"gen_ai.completion.0.tool_call_id": "c1"}):
        assert "tool_call" not in {part.type for part in parse_messages("indexed", json.dumps(other), "output")}


@pytest.mark.parametrize(
    ("ids", "arguments", "read"),
    [
        ("c1, c2", '{"a": "x, y"}, {}', [("c1", "pay", '{"a": "x, y"}'), ("c2", "look", "{}")]),
        ("c1", '{"a": "x, y"}, {}', [(None, "pay", '{"a": "x, y"}'), (None, "look", "{}")]),
        ("c1, c2", '{"a": "x, {}', [("c1", "pay", None), ("c2", "look", None)]),
    ],
    ids=["each has its own", "an id is missing", "arguments that were cut"],
)
def test_listed_calls_have_what_is_surely_theirs(ids: str, arguments: str, read: list[Any]) -> None:
    """OpenLIT joins the calls of an answer with commas, and leaves out what is empty."""
    said = {"gen_ai.tool.name": "pay, look", "gen_ai.tool.call.id": ids, "gen_ai.tool.args": arguments}

    found = parse_messages("listed_calls", json.dumps(said), "output")

    assert [(one.call_id, one.name, one.text) for one in found] == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("__REDACTED__", None),
        ("****", None),
        ("[Scrubbed due to 'password']", None),
        ("It is [REDACTED].", "It is [REDACTED]."),
    ],
)
def test_a_mask_in_place_of_a_text_is_no_text(text, read):
    payload = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])
    assert [part.text for part in parse_messages("genai_parts", payload, "output")] == [read]
