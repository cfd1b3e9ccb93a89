"""Google ADK: its agents, transfers, messages and tools, before and since version 1. Hand-made spans, true facts; ids and figures are made up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from building import Lab, S

pytestmark = pytest.mark.full


ACTIVATIONS = "SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no"


TOOLS = "SELECT name, outcome FROM tool_calls ORDER BY call_no"


def adk(id: str, parent: str, name: str, at: int, to: int, **attrs: Any) -> S:
    return S(id, parent, at, to, name, {k.replace("__", "."): v for k, v in attrs.items()}, scope="gcp.vertex.agent")


def adk_tool(id: str, parent: str, at: int, name: str, args: dict[str, Any] | None = None) -> S:
    attrs: dict[str, Any] = {
        "gen_ai__operation__name": "execute_tool",
        "gen_ai__tool__name": name,
        "gen_ai__tool__call__id": id,
    }
    if args is not None:
        attrs |= {
            "gcp__vertex__agent__tool_call_args": json.dumps(args),
            "gcp__vertex__agent__tool_response": '{"result": "21 C"}',
        }
    return adk(id, parent, at=at, to=at + 2, name=f"execute_tool {name}", **attrs)


def adk_agent(id: str, parent: str, at: int, to: int, name: str) -> S:
    return adk(
        id, parent, f"invoke_agent {name}", at, to, gen_ai__operation__name="invoke_agent", gen_ai__agent__name=name
    )


class TestGoogleAdk:
    def test_version_1_records_one_call_twice(self, lab: Lab) -> None:
        """`call_llm` has no operation name and repeats the usage of the span below it."""
        usage = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
        lab.put(
            adk("i", "", "invocation", 0, 99),
            adk("a", "i", "agent_run [assistant]", 1, 98),
            adk("c", "a", "call_llm", 2, 90, gen_ai__system="gcp.vertex.agent", gen_ai__request__model="gemini-2.5-flash", **usage),
            adk("g", "c", "generate_content gemini-2.5-flash", 3, 20, gen_ai__operation__name="generate_content", gen_ai__request__model="gemini-2.5-flash", **usage),
            adk_tool("t", "c", 30, "get_weather", {"city": "Paris"}),
        )  # fmt: skip

        assert lab.totals("llm_calls", "input_tokens", "output_tokens", "tool_calls") == (1, 100, 10, 1)
        assert lab.rows("SELECT name, arguments, result FROM tool_calls") == [
            ("get_weather", '{"city": "Paris"}', '{"result": "21 C"}')
        ]
        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root")]

    def test_messages_and_thoughts_of_version_1(self, lab: Lab) -> None:
        """The raw response counts candidates and thoughts apart."""
        response = {
            "content": {"role": "model", "parts": [{"function_call": {"id": "f1", "name": "ask", "args": {"q": 1}}}]},
            "usage_metadata": {"prompt_token_count": 100, "candidates_token_count": 10, "thoughts_token_count": 5, "total_token_count": 115},
        }  # fmt: skip
        lab.put(
            adk("c", "", "call_llm", 2, 9, gen_ai__request__model="gemini-2.5-flash", gen_ai__usage__input_tokens=100,
                gen_ai__usage__output_tokens=10, gcp__vertex__agent__llm_response=json.dumps(response))
        )  # fmt: skip

        assert lab.rows("SELECT output_tokens, reasoning_tokens, certain FROM llm_calls") == [(15, 5, True)]
        assert lab.rows("SELECT name, outcome, arguments, call_id, certain FROM tool_calls") == [
            ("ask", None, '{"q":1}', "f1", False)
        ]
        # What followed the request was not received: further calls may have used more.
        assert lab.reasons() == ["unanswered_tool_call"]
        assert lab.totals("output_tokens_low", "output_tokens_high") == (15, None)

    def test_a_transfer_goes_to_the_next_sibling_agent(self, lab: Lab) -> None:
        """The transfer's arguments are not recorded by default; a later agent used as a tool is none of its targets."""
        lab.put(
            adk("w", "", "invoke_workflow assistant", 0, 99, gen_ai__operation__name="invoke_workflow"),
            adk_agent("a", "w", 1, 10, "assistant"),
            adk_tool("h", "a", 5, "transfer_to_agent"),
            adk_agent("b", "w", 11, 60, "billing"),
            adk_tool("t", "b", 20, "researcher"),
            adk_agent("r", "t", 21, 30, "researcher"),
        )

        assert lab.rows(ACTIVATIONS) == [
            ("assistant", None, "root"),
            ("billing", 1, "handoff"),
            ("researcher", 2, "tool"),
        ]
        assert lab.rows(TOOLS) == [("researcher", "ok")]

    def test_a_transfer_that_nothing_followed_went_to_somebody_unknown(self, lab: Lab) -> None:
        """It is a delegation all the same: to claim that there was none would be wrong."""
        lab.put(
            adk("w", "", "invoke_workflow assistant", 0, 99, gen_ai__operation__name="invoke_workflow"),
            adk_agent("a", "w", 1, 10, "assistant"),
            adk_tool("h", "a", 5, "transfer_to_agent"),
        )

        assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), (None, 1, "handoff")]

    def test_a_named_transfer_goes_where_it_says(self, lab: Lab) -> None:
        lab.put(
            adk("w", "", "invoke_workflow assistant", 0, 99, gen_ai__operation__name="invoke_workflow"),
            adk_agent("a", "w", 1, 10, "assistant"),
            adk_tool("h", "a", 5, "transfer_to_agent", {"agent_name": "billing"}),
            adk_agent("x", "w", 11, 12, "logger"),
            adk_agent("b", "w", 13, 60, "billing"),
        )

        assert lab.rows(ACTIVATIONS) == [
            ("assistant", None, "root"),
            ("logger", None, "root"),
            ("billing", 1, "handoff"),
        ]

    def test_a_transfer_of_version_1_nests(self, lab: Lab) -> None:
        lab.put(
            adk_agent("a", "", 1, 90, "assistant"),
            adk_tool("h", "a", 5, "transfer_to_agent"),
            adk_agent("b", "a", 11, 60, "billing"),
        )

        assert lab.rows("SELECT name, parent_activation_no FROM agents ORDER BY activation_no") == [
            ("assistant", None),
            ("billing", 1),
        ]

    def test_merged_tools_are_none(self, lab: Lab) -> None:
        lab.put(
            adk_agent("a", "", 0, 90, "assistant"),
            adk_tool("t", "a", 5, "get_weather"),
            adk_tool("x", "a", 9, "(merged tools)"),
        )

        assert lab.rows(TOOLS) == [("get_weather", "ok")]
