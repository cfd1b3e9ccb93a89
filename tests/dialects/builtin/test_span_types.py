"""Instrumentations that nobody has met, in whatever word they say what a span is."""

from __future__ import annotations

import json

import pytest
from building import Lab, S

ARGUMENTS = '{"city": "Paris"}'


@pytest.mark.parametrize(
    "key", ["acme.span.kind", "acme.span.type", "acme_span_type", "acme.spanType", "x.observation.type"]
)
@pytest.mark.parametrize("say", [str, str.upper, json.dumps])
def test_a_span_is_what_it_says(lab: Lab, key: str, say) -> None:
    """Tool and agent are called as their spans where no attribute names them; arguments and result stand in input and output."""
    asked = json.dumps([{"role": "user", "content": "How is the weather?"}])
    lab.put(
        S("a", "", 0, 90, "planner", {key: say("agent")}),
        S("m", "a", 1, 9, "ask", {key: say("llm"), "gen_ai.request.model": "gpt-4o", "acme.input": asked, "acme.output": "It is."}),
        S("t", "a", 10, 20, "get_weather", {key: say("tool"), "acme.input": ARGUMENTS, "acme.output": "21 degrees"}),
        S("c", "a", 21, 22, "step", {key: say("chain")}),
    )  # fmt: skip

    assert lab.rows("SELECT name, via FROM agents") == [("planner", "root")]
    assert lab.rows("SELECT name, arguments, result, outcome, certain FROM tool_calls") == [
        ("get_weather", ARGUMENTS, "21 degrees", "ok", True)
    ]
    assert lab.rows("SELECT request_model, outcome FROM llm_calls") == [("gpt-4o", "ok")]
    assert lab.rows("SELECT role, text FROM messages WHERE span_id = (SELECT span_id FROM llm_calls)") == [
        ("user", "How is the weather?"), ("assistant", "It is."),
    ]  # fmt: skip


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
