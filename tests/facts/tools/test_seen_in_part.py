"""What only a part of the tools is seen through proves no absence: MCP alone, a log that records no tool."""

from __future__ import annotations

from typing import Any

import pytest
from building import Lab, S, agent, chat, says

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}


def statuses(lab: Lab, *assertions: dict[str, Any]) -> list[str]:
    lab.facts.ensure(["r"])
    (result,) = evaluate(lab.store, [parse_assertion(one) for one in assertions], ["r"], DIALECTS)
    return [verdict.status.value for verdict in result.verdicts]


def served(id: str, parent: str = "", *, at: int = 1) -> S:
    """What an MCP server records of a call."""
    attrs = {"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add"}
    return S(id, parent, at, at + 2, "tools/call add", attrs, scope="fastmcp")


ASKED: tuple[dict[str, Any], ...] = (
    {"type": "tool_was_called", "tool": "add"},
    {"type": "tool_call_count", "min": 1},
    {"type": "tool_not_invoked", "tool": "rm"},
    {"type": "tool_sequence", "mode": "strict", "expected": ["add"]},
    {"type": "tool_call_count", "max": 5},
    {"type": "no_span_errors"},
)


def test_a_server_of_tools_alone_records_its_own_tools_only(lab: Lab) -> None:
    """Its agent exports nothing: the other tools were once taken for never called."""
    lab.put(served("s"))

    assert statuses(lab, *ASKED) == ["pass"] * 2 + ["inconclusive"] * 4
    assert lab.totals("tool_calls", "errors") == (None, None)


@pytest.mark.parametrize("other", [agent("a"), chat("a")], ids=["framework", "a model that asked for nothing"])
def test_it_adds_to_what_records_all_tools(lab: Lab, other: S) -> None:
    lab.put(other, served("s"))

    assert statuses(lab, *ASKED) == ["pass"] * 6


def test_a_log_that_records_an_agent_and_no_tool(lab: Lab) -> None:
    """Its dialect says that it could not: that an agent was at work does not make it one that can."""
    lab.put(agent("a"), chat("m", "a"))
    logged = [agent("b", at=1), agent("c", "b", at=2, to=9, agent="writer")]
    for span in logged:
        span.scope = "clawtrace.logs.gateway.without_tools"
    lab.put(*logged, run="log")
    lab.facts.ensure(["log"])

    assert lab.totals("tool_calls", run="log") == (None,)
    assert lab.totals("tool_calls") == (0,)


@pytest.mark.parametrize(
    ("flags", "answer"),
    [(0x100, None), (0x300, "21 degrees"), (0, "21 degrees")],
    ids=["same process", "remote", "not stated"],
)
def test_work_that_went_on_where_nothing_was_received(lab: Lab, flags: int, answer: str | None) -> None:
    """A span after the last model call, whose parent was lost with the program's end: the model may have answered again."""
    later = S("later", "lost", 50, 60, "save", {"gen_ai.operation.name": "chat_tools"}, flags=flags)
    lab.put(chat("m", at=1, **{"gen_ai.output.messages": says("21 degrees")}), later)

    assert lab.rows("SELECT final_output FROM runs") == [(answer,)]


def test_a_request_that_may_have_been_made_again(lab: Lab) -> None:
    """Whether its failure was the last word, what was lost would tell: the number of errors is unknown."""
    request = S(
        "a", "s", 1, 9, "ai.streamText.doStream", {"ai.operationId": "ai.streamText.doStream"}, error="500", scope="ai"
    )
    step = S("s", "", 0, 10, "ai.streamText", {"ai.operationId": "ai.streamText"}, scope="ai")
    later = S("later", "lost", 50, 60, "save")
    lab.put(step, request, later)

    assert lab.totals("errors") == (None,)
