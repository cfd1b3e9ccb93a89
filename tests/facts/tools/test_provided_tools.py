"""Tools that a model's provider runs itself: a web search of OpenAI, the code of Anthropic, a remote server of MCP."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from building import Lab, S, agent, asks, chat, says, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.dialects.messages import parse_messages
from clawtrace.model.verdict import Status
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}
OUTPUT, OFFER = "gen_ai.output.messages", "gen_ai.tool.definitions"
ADD = {"type": "function", "name": "add", "description": "Adds.", "parameters": {}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
RECORDS_THEM = "opentelemetry.instrumentation.genai.openai"
PLAIN = says("It is sunny.")


def status(lab: Lab, **assertion: Any) -> Status:
    lab.facts.ensure(["r"])
    return statuses(lab, "r", assertion)[0]


def statuses(lab: Lab, run: str, *assertions: dict[str, Any]) -> list[Status]:
    asked = [parse_assertion({"id": f"a{number}", **one}) for number, one in enumerate(assertions)]
    (result,) = evaluate(lab.store, asked, [run], DIALECTS)
    return [verdict.status for verdict in result.verdicts]


def offered(*tools: Any, answer: str = PLAIN, scope: str = "mine") -> Lab:
    """An agent whose model is offered tools, and answers."""
    return Lab().put(*offering(*tools, answer=answer, scope=scope))


def offering(*tools: Any, answer: str = PLAIN, scope: str = "mine") -> tuple[S, ...]:
    call = chat("m", "a", **{OFFER: json.dumps(tools), OUTPUT: answer})
    return replace(agent("a"), scope=scope), replace(call, scope=scope)


def test_an_offered_one_may_have_been_used(lab: Lab) -> None:
    """Once their calls were in no row, and a forbidden search passed."""
    tools = [
        ({"type": "web_search"}, {"web_search"}),
        ({"type": "web_search_preview_2025_03_11"}, {"web_search"}),
        (SEARCH, {"web_search"}),
        ({"name": "web_search"}, {"web_search"}),
        ({"type": "provider-defined", "id": "openai.web_search", "name": "find"}, {"find"}),
        ({"google_search": {}, "code_execution": {}}, {"google_search", "code_execution"}),
        ({"type": "mcp", "name": "mcp", "server_label": "shop"}, {None}),
        ({"name": None}, {None}),
    ]
    lab.put_each({json.dumps(offer): offering(ADD, offer) for offer, _ in tools})

    for offer, names in tools:
        run = json.dumps(offer)
        gaps = lab.rows("SELECT DISTINCT name FROM gaps WHERE reason = 'server-tool-calls-not-recorded'", run)
        assert {name for (name,) in gaps} == names, run
        open_ones = [{"type": "tool_not_invoked", "tool": name or "refund"} for name in names]
        open_ones += [{"type": "tool_call_count", "max": 0}, {"type": "no_span_errors"}]
        assert set(statuses(lab, run, *open_ones)) == {Status.INCONCLUSIVE}, run
        if None not in names:
            others = (
                {"type": "tool_not_invoked", "tool": "refund"},
                {"type": "tool_sequence", "expected": ["add"], "mode": "strict"},
            )
            assert statuses(lab, run, *others) == [Status.PASS, Status.FAIL], run


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "name": "web_search", "parameters": {}},
        {"type": "function", "function": {"name": "web_search"}},
        {"name": "web_search", "description": "Searches.", "input_schema": {}},
        {"type": "bash_20250124", "name": "bash"},
    ],
)
def test_what_the_program_runs_is_none(tool: dict[str, Any]) -> None:
    assert status(offered(tool), type="tool_not_invoked", tool="web_search") is Status.PASS


def test_an_instrumentation_that_records_their_calls_shows_that_there_is_none() -> None:
    lab = offered(ADD, SEARCH, scope=RECORDS_THEM)

    assert status(lab, type="tool_not_invoked", tool="web_search") is Status.PASS
    assert status(lab, type="tool_call_count", count=0) is Status.PASS


@pytest.mark.parametrize(
    ("call_id", "tool"),
    [("c1", {"type": "provider", "id": "openai.web_search", "name": "find"}), ("srvtoolu_1", {"type": "function", "name": "find"})],
)  # fmt: skip
def test_a_request_for_one_needs_no_span_to_have_been_carried_out(call_id: str, tool: dict[str, Any]) -> None:
    """Once it was said to be asked for and not run, since its framework writes a span for every execution."""
    lab = offered(ADD, tool, answer=asks((call_id, "find", {})), scope="gen_ai")

    assert lab.rows("SELECT name, certain FROM tool_calls") == [("find", True)]
    assert lab.rows("SELECT name FROM tool_requests") == []
    assert status(lab, type="tool_not_invoked", tool="find") is Status.FAIL


@pytest.mark.parametrize("is_recorded", [True, False])
def test_the_model_calls_of_an_agent_are_for_another_instrumentation_to_record(is_recorded: bool) -> None:
    """Without it, nothing shows what the provider ran."""
    scope = "opentelemetry.instrumentation.genai.openai_agents"
    spans = [replace(agent("a"), scope=scope), replace(tool("t", "a"), scope=scope)]
    spans += [replace(chat("m", "a", **{OUTPUT: PLAIN}), scope=RECORDS_THEM)] if is_recorded else []
    lab = Lab().put(*spans)

    expected = Status.PASS if is_recorded else Status.INCONCLUSIVE
    assert status(lab, type="tool_not_invoked", tool="web_search") is expected


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool_call", "id": "w", "name": "web_search", "builtin": True, "arguments": {"q": 1}},
        {"type": "tool-call", "toolCallId": "w", "toolName": "web_search", "providerExecuted": True, "input": {"q": 1}},
    ],
)
def test_flags_of_frameworks(part: dict[str, Any]) -> None:
    (read,) = parse_messages("genai_parts", json.dumps([{"role": "assistant", "parts": [part]}]), "output")

    assert (read.type, read.call_id, read.name, read.text) == ("server_tool_call", "w", "web_search", '{"q":1}')


def test_its_failure_is_in_the_answer_that_asked_for_it() -> None:
    """The provider writes what its tool answered next to the request; no later request repeats it."""
    parts = [
        {"type": "server_tool_call", "id": "s", "name": "web_search", "arguments": {}},
        {"type": "tool_call_response", "id": "s", "response": "too many searches", "is_error": True},
        {"type": "text", "content": "I could not look it up."},
    ]
    lab = offered(answer=json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "stop"}]))

    assert lab.rows("SELECT name, outcome, result FROM tool_calls") == [("web_search", "error", "too many searches")]
    assert status(lab, type="no_span_errors") is Status.FAIL
