"""Spans in a program's own words, next to those of an instrumentation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from building import Lab, S, agent, chat, tool

AROUND = {
    "a model's name": S("o", "", 0, 99, "chat", {"model": "gpt-4o", "user": "7"}),
    "an agent's name": S("o", "", 0, 99, "agent run", {"agent": "support", "customer": "x"}),
    "a tool's name": S("o", "", 0, 99, "handle tool request", {"tool": "search", "input": "hello"}),
    "a row's model": S("o", "", 0, 99, "generate report", {"report.model": "Order", "report.output": "pdf"}),
}


@pytest.mark.parametrize("outer", AROUND.values(), ids=AROUND)
def test_around_an_agent_that_is_recorded_they_are_steps(lab: Lab, outer: S) -> None:
    lab.put(replace(outer, scope="shop"), agent("a", "o", at=1), chat("m", "a", at=2), tool("t", "a", at=10))

    assert lab.totals("llm_calls", "tool_calls", "agents") == (1, 1, 1)
    assert lab.rows("SELECT name, certain FROM agents") == [("assistant", True)]


def test_in_a_tool_call_that_is_recorded_they_are_steps_and_next_to_it_calls(lab: Lab) -> None:
    said = {"tool": "vector_db", "input": '{"q": 1}', "output": "[]"}
    lab.put(
        agent("a"), chat("m", "a", at=1), tool("t", "a", at=10), S("i", "t", 10, 11, "vector_db", said, scope="shop"),
        S("n", "a", 20, 21, "lookup", {**said, "tool": "lookup"}, scope="shop"), chat("l", "a", at=30),
    )  # fmt: skip

    assert lab.rows("SELECT name FROM tool_calls ORDER BY call_no") == [("get_weather",), ("lookup",)]


def test_a_model_call_in_a_tool_call_may_be_one(lab: Lab) -> None:
    """A service that the tool asks writes its spans in other words; or the tool made a note."""
    said = {"model": "gpt-4o", "usage.prompt_tokens": 422, "usage.completion_tokens": 22}
    lab.put(agent("a"), chat("m", "a", at=1), tool("t", "a", at=10), S("i", "t", 10, 11, "llm", said, scope="service"))

    assert lab.rows("SELECT certain FROM llm_calls ORDER BY call_no") == [(True,), (False,)]
