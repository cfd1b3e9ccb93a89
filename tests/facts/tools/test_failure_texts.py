"""Tool spans that are OK, and whose result says that the tool failed."""

from __future__ import annotations

import pytest
from building import Lab, agent, tool

RESULT = "gen_ai.tool.call.result"


@pytest.mark.parametrize(
    "text",
    [
        "Error executing tool: refund of A-1 failed",
        '{"result": "Error executing tool: refund of A-1 failed"}',
        "An error occurred while running the tool. Please try again.",
        "Failed to call refund_order: no answer",
        "Tool refund_order failed: no answer",
        "Error: refund of A-1 failed",
    ],
)
def test_whether_it_failed_is_unknown(lab: Lab, text: str) -> None:
    lab.put(agent("a"), tool("t", "a", at=1, **{RESULT: text}))

    assert lab.rows("SELECT outcome FROM tool_calls") == [("unknown",)]
    assert lab.totals("tool_calls", "errors") == (1, None)


@pytest.mark.parametrize(
    "text", ["21 degrees", "No error", "The tool is ready", "Errors: 0", '{"errors": []}', "Toolbox failed over", ""]
)
def test_other_words_say_nothing(lab: Lab, text: str) -> None:
    lab.put(agent("a"), tool("t", "a", at=1, **{RESULT: text}))

    assert lab.rows("SELECT outcome FROM tool_calls") == [("ok",)]


def test_words_that_may_be_the_tools_own_say_nothing_where_the_framework_is_known(lab: Lab) -> None:
    """Frameworks that answer so for a tool that failed are read by a dialect that knows it."""
    read = tool("t", "a", at=1, **{RESULT: "Error: no such order"})
    read.scope, read.version = "pydantic-ai", "2.14.0"
    lab.put(agent("a"), read)

    evidence = lab.rows("SELECT DISTINCT rule FROM spans WHERE kind = 'tool'")
    assert evidence != [("generic",)]
    assert lab.rows("SELECT outcome FROM tool_calls") == [("ok",)]
