"""Tool calls for which no tool may have been run, though a span or a result stands for them (found by `make soak`)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from building import SDK, Lab, S, agent, answered, asks, chat, says, tool

CALLS = "SELECT name, outcome FROM tool_calls ORDER BY call_no"
FAILED = {"exception.type": "ValueError", "exception.message": "no such city"}
TOOLS = json.dumps(
    [
        {
            "type": "function",
            "name": "get_weather",
            "parameters": {"type": "object", "required": ["city"], "properties": {}},
        }
    ]
)


def executed(scope: str, given: str, failure: dict[str, Any], **more: Any) -> list[S]:
    """A model asks for the weather, and the span of the execution failed."""
    asked = {"gen_ai.output.messages": asks(("c1", "get_weather", {})), "gen_ai.tool.definitions": TOOLS}
    told = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": given, **more}
    spans = [
        agent("a"),
        chat("m", "a", at=1, **asked),
        replace(tool("t", "a", at=20, **told), error="it failed", events=[("exception", failure)]),
    ]
    return [replace(span, scope=scope) for span in spans]


@pytest.mark.parametrize(
    ("scope", "given", "failure", "more", "outcome"),
    [
        ("x", '{"city": "Oslo"}', FAILED, {}, "error"),
        ("x", "{}", FAILED, {}, None),
        ("x", '{"city": "Os', FAILED, {}, None),
        ("x", '{"city": "Oslo"}', {"exception.type": "asyncio.exceptions.CancelledError"}, {}, None),
        ("x", '{"city": "Oslo"}', {"exception.type": "System.Threading.Tasks.TaskCanceledException"}, {}, None),
        ("pydantic-ai", "{}", FAILED, {"pydantic_ai.tool.failure_stage": "validation"}, "unexecuted"),
    ],
)
def test_a_failed_execution_may_be_none(
    scope: str, given: str, failure: dict[str, Any], more: dict[str, Any], outcome: str | None
) -> None:
    """Arguments that do not fit what the model was offered, and a call that was given up, leave it open."""
    lab = Lab().put(*executed(scope, given, failure, **more))

    assert lab.rows(CALLS) == [("get_weather", outcome)]


@pytest.mark.parametrize(
    ("name", "arguments", "outcome"),
    [("get_weather", {"city": "Oslo"}, "unknown"), ("get_weather", {}, None), ("get_wether", {"city": "Oslo"}, None)],
)
def test_a_program_may_refuse_a_call(name: str, arguments: dict[str, Any], outcome: str | None) -> None:
    """Where no execution has a span an answer says that the tool was run, unless the call does not fit what was offered."""
    first = {"gen_ai.output.messages": asks(("c1", name, arguments)), "gen_ai.tool.definitions": TOOLS}
    second = {"gen_ai.input.messages": answered("c1", "Error"), "gen_ai.output.messages": says("no")}
    lab = Lab().put(*(replace(span, scope=SDK) for span in (chat("m", at=1, **first), chat("n", at=10, **second))))

    assert lab.rows(CALLS) == [(name, outcome)]
