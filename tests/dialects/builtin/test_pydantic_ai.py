"""Pydantic AI, in its formats. Hand-made spans, true facts; ids and figures are made up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from building import Lab, S, agent, asks, chat

pytestmark = pytest.mark.full


TOOLS = "SELECT name, outcome FROM tool_calls ORDER BY call_no"


def pydantic(id: str, parent: str, name: str, at: int, to: int, error: str | None = None, **attrs: Any) -> S:
    return S(
        id, parent, at, to, name, {k.replace("__", "."): v for k, v in attrs.items()}, error=error, scope="pydantic-ai"
    )


class TestPydanticAi:
    def test_format_1(self, lab: Lab) -> None:
        """One JSON attribute holds the events; tools run below `running 2 tools`."""
        call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
        events = [
            {"event.name": "gen_ai.user.message", "content": "hi", "role": "user"},
            {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": [call]}},
        ]
        lab.put(
            pydantic("a", "", "agent run", 0, 99, agent_name="assistant", gen_ai__usage__input_tokens=100),
            pydantic("m", "a", "chat gpt-4o", 1, 9, gen_ai__operation__name="chat", gen_ai__request__model="gpt-4o",
                     gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=10, events=json.dumps(events)),
            pydantic("r", "a", "running 2 tools", 10, 30, tools=["get_weather", "pay"]),
            pydantic("t", "r", "running tool", 11, 12, gen_ai__tool__name="get_weather", gen_ai__tool__call__id="c1", tool_response="21 C"),
            pydantic("u", "r", "running tool", 13, 14, gen_ai__tool__name="pay", tool_arguments="{}"),
        )  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "tool_calls", "agents") == (1, 100, 2, 1)
        assert lab.rows("SELECT name, arguments, result FROM tool_calls ORDER BY call_no") == [
            ("get_weather", '{"city":"Paris"}', "21 C"),
            ("pay", "{}", None),
        ]

    def test_a_pending_span_is_no_span_of_its_own(self, lab: Lab) -> None:
        call = chat("m", "a", at=1)
        pending = chat("p", "m", at=1, **{"logfire.span_type": "pending_span", "logfire.pending_parent_id": "0" * 16})
        call.scope = pending.scope = "pydantic-ai"
        lab.put(agent("a"), call, pending)

        assert lab.totals("llm_calls", "input_tokens") == (1, 100)
        assert lab.rows("SELECT kind FROM spans WHERE kind NOT IN ('agent', 'llm')") == [("infra",)]

    def test_a_call_that_was_put_off_did_not_run(self, lab: Lab) -> None:
        """Up to format 4 it ended as an error; the call stays asked for, and no attempt."""
        attrs = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "pay", "gen_ai__tool__call__id": "c1"}
        model = replace(
            chat("m", "a", at=1, **{"gen_ai.output.messages": asks(("c1", "pay", {}))}), scope="pydantic-ai"
        )
        lab.put(
            agent("a"), model,
            pydantic("t", "a", "execute_tool pay", 9, 10, "ApprovalRequired", pydantic_ai__tool__deferral__name="ApprovalRequired", **attrs),
        )  # fmt: skip

        assert lab.rows(TOOLS) == []
        assert lab.rows("SELECT name, reason FROM tool_requests") == [("pay", "not-run")]
        assert lab.totals("tool_calls", "errors") == (0, 0)

    def test_output_functions_and_final_answers_are_no_tool_calls(self, lab: Lab) -> None:
        parameters = json.dumps({"output_tools": [{"name": "final_result"}]})
        attrs = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "report"}
        final = {"gen_ai.output.messages": asks(("c1", "final_result", {}))}
        lab.put(
            agent("a"),
            replace(chat("m", "a", at=1, model_request_parameters=parameters, **final), scope="pydantic-ai"),
            pydantic("t", "a", "execute_tool report", 9, 10, logfire__msg="running output function: report", **attrs),
        )  # fmt: skip

        assert lab.totals("tool_calls") == (0,)
        assert lab.rows("SELECT name FROM tool_requests") == []
