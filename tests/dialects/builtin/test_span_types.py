"""Instrumentations that nobody has met, in whatever word they say what a span is."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from building import Lab, S, shared_lab

ARGUMENTS = '{"city": "Paris"}'


KEYS = ["acme.span.kind", "acme.span.type", "acme_span_type", "acme.spanType", "x.observation.type"]
WAYS = {"as it is": str, "in capitals": str.upper, "as JSON": json.dumps}


@pytest.fixture(scope="module")
def said() -> Iterator[Lab]:
    """A laboratory with a run for each attribute and each way to write its value."""
    asked = json.dumps([{"role": "user", "content": "How is the weather?"}])
    with shared_lab() as lab:
        yield lab.put_each({f"{key} {way}": (
            S("a", "", 0, 90, "planner", {key: say("agent")}),
            S("m", "a", 1, 9, "ask", {key: say("llm"), "gen_ai.request.model": "gpt-4o", "acme.input": asked, "acme.output": "It is."}),
            S("t", "a", 10, 20, "get_weather", {key: say("tool"), "acme.input": ARGUMENTS, "acme.output": "21 degrees"}),
            S("c", "a", 21, 22, "step", {key: say("chain")}),
        ) for key in KEYS for way, say in WAYS.items()})  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("way", WAYS)
def test_a_span_is_what_it_says(said: Lab, key: str, way: str) -> None:
    """Tool and agent are called as their spans where no attribute names them; arguments and result stand in input and output."""
    answers = {
        "SELECT name, via FROM agents": [("planner", "root")],
        "SELECT name, arguments, result, outcome, certain FROM tool_calls": [
            ("get_weather", ARGUMENTS, "21 degrees", "ok", True)
        ],
        "SELECT request_model, outcome FROM llm_calls": [("gpt-4o", "ok")],
        "SELECT role, text FROM messages": [("user", "How is the weather?"), ("assistant", "It is.")],
    }

    assert {sql: said.rows(f"{sql} WHERE run_id = :run", f"{key} {way}") for sql in answers} == answers


def test_texts_in_envelopes(lab: Lab) -> None:
    """LangWatch says with each text what it is."""
    said = {"langwatch.span.type": "tool", "langwatch.input": f'{{"type": "json", "value": {ARGUMENTS}}}'}
    lab.put(S("t", "", 0, 9, "get_weather", {**said, "langwatch.output": '{"type": "text", "value": "21"}'}))

    assert lab.rows("SELECT name, arguments, result FROM tool_calls") == [("get_weather", '{"city":"Paris"}', "21")]


@pytest.mark.parametrize("value", ["client", "internal", "7", "invoice"])
def test_other_attributes_of_such_a_name(lab: Lab, value: str) -> None:
    """A program may mean something else by it."""
    lab.put(S("t", "", 0, 9, "get_weather", {"billing.span.type": value}))

    assert lab.rows("SELECT kind FROM spans") == [("other",)]


def test_names_of_spans_that_are_code(lab: Lab) -> None:
    """A method's name is left out; a class says nothing."""
    names = {
        "tool.get_weather": ("get_weather", None), "get_weather.__call__": ("get_weather", None), "SimpleTool.__call__": (None, None),
        "InvalidToolCall": (None, None), "planner.run": (None, "planner"), "agent:planner": (None, "planner"),
        "call_agent": (None, None), "Billing Agent": (None, "Billing Agent"),
    }  # fmt: skip
    tools = list(names)[:4]
    lab.put_each(
        {one: (S("t", "", 0, 9, one, {"acme.span.type": "tool" if one in tools else "agent"}),) for one in names}
    )

    found = {name: read for name, *read in lab.rows("SELECT run_id, tool_name, agent_name FROM spans")}
    assert found == {name: list(read) for name, read in names.items()}


@pytest.mark.parametrize(
    "said",
    [
        {"kwargs": {"city": "Paris"}}, {"args": [], "kwargs": {"city": "Paris"}, "sanitize": True},
        {"tool_name": "get_weather", "tool_args": {"city": "Paris"}}, {"input_str": ARGUMENTS, "tags": ["a"]},
    ],
)  # fmt: skip
def test_arguments_in_a_functions_call(lab: Lab, said: dict[str, object]) -> None:
    """What a function was called with is an envelope around a tool's arguments."""
    lab.put(S("t", "", 0, 9, "get_weather", {"acme.span.type": "tool", "acme.input": json.dumps(said)}))

    [(arguments,)] = lab.rows("SELECT arguments FROM tool_calls")
    assert json.loads(arguments) == {"city": "Paris"}


@pytest.mark.parametrize(
    "said",
    [
        {"acme.usage.input_tokens": 7, "acme.usage.output_tokens": 3, "acme.usage.input_cached_tokens": 2},
        {"acme.usage.promptTokens": 7, "acme.usage.completionTokens": 3, "acme.usage.cachedInputTokens": 2},
        {"acme.tokenUsage": '{"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}'},
        {"acme.output": '{"usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}}'},
    ],
)  # fmt: skip
def test_spellings_of_usage(lab: Lab, said: dict[str, object]) -> None:
    """Usage stands in attributes of many names, in an object, or in the provider's answer."""
    lab.put(S("m", "", 0, 9, "ask", {"acme.span.kind": "LLM", **said}))

    assert lab.rows("SELECT input_tokens, output_tokens, cache_read_tokens FROM llm_calls") == [(7, 3, 2)]


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ('{"isError": true, "content": []}', "error"), ('{"type": "tool", "status": "error", "content": "no"}', "error"),
        ('{"data": {"status": "failed"}}', None), ("21 degrees", "ok"),
    ],
)  # fmt: skip
def test_results_that_say_that_something_failed(lab: Lab, result: str, outcome: str | None) -> None:
    """A protocol's word for a failed tool is an error; of other objects nothing tells whose failure it is."""
    lab.put(S("t", "", 0, 9, "get_weather", {"acme.span.type": "tool", "acme.output": result}))

    assert lab.rows("SELECT outcome FROM tool_calls") == [(outcome,)]


@pytest.mark.parametrize("tool", ["ask_researcher", "handoff_to_agent"])
def test_an_agent_that_another_may_have_called(lab: Lab, tool: str) -> None:
    """A span that lies beside its caller's tool, within its time or after a handoff, may have been called by it: nobody knows."""
    key = "acme.span.type"
    at, to = (12, 18) if tool == "ask_researcher" else (30, 40)
    lab.put(
        S("r", "", 0, 90, "workflow", {key: "workflow"}),
        S("a", "r", 1, 25, "planner", {key: "agent"}),
        S("m", "a", 2, 9, "ask", {key: "llm", "gen_ai.request.model": "gpt-4o", "acme.output": "x"}),
        S("t", "a", 10, 20, tool, {key: "tool"}),
        S("b", "r", at, to, "researcher", {key: "agent"}),
        S("n", "b", at + 1, to - 1, "ask", {key: "llm", "gen_ai.request.model": "gpt-4o", "acme.output": "y"}),
    )

    assert lab.rows("SELECT name, via FROM agents") == [("planner", "root"), ("researcher", None)]
