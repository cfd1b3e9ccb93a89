"""A real OpenClaw, run and judged: what clawtrace says of it is what the model server and the tools' own log say.

OpenClaw 2026.4.27 records neither usage, arguments nor the names of agents in its spans: those are unknown, and what asks
for them is inconclusive; the transcripts of its sessions tell them. A tool that is denied is not offered; a model that asks for it all the same is turned away, and no
span records it: nothing was executed. A hook that refuses a call leaves a span that says so.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.live_openclaw.conftest import Judged, Play

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]  # a busy machine starts two gateways in minutes

COMMANDS, TALK = "Please run the commands.", "Just say hello."


def exec_(command: str) -> list[dict[str, Any]]:
    return [{"name": "exec", "arguments": {"command": command}}]


STEPS: list[dict[str, Any]] = [
    {"when": {"user": "run the commands"}, "tool_calls": exec_("echo hello >> tool.log")},
    {"when": {"user": "run the commands"}, "tool_calls": exec_("echo boom >> tool.log; exit 3")},
    {"when": {"user": "run the commands"}, "tool_calls": [{"name": "read", "arguments": {"path": "no-such-file.txt"}}]},
    {"when": {"user": "run the commands"}, "tool_calls": [{"name": "write", "arguments": {"path": "a.txt", "content": "x"}}]},
    {"when": {"user": "run the commands"}, "text": "One of four worked."},
    {"when": {"user": "say hello"}, "text": "Hello."},
]  # fmt: skip
CHECKS = """
assertions:
  - {type: tool_call_count, tool: exec, count: 2}
  - {type: llm_call_count, max: 6}
  - {type: tool_not_invoked, tool: write}
  - {type: tool_was_called, tool: browser}
  - {type: trace_token_budget, max_total_tokens: 100000}
  - {type: no_span_errors}
"""

DELEGATING: list[dict[str, Any]] = [
    {
        "when": {"model": "gpt-4o", "user": "Please delegate"}, "usage": {"input": 1013, "output": 23},
        "tool_calls": [{"name": "sessions_spawn", "arguments": {"task": "Run it.", "agentId": "researcher", "label": "research"}}],
    },
    {"when": {"model": "gpt-4o", "user": "Please delegate"}, "usage": {"input": 1129, "output": 37}, "text": "I have asked."},
    {"when": {"model": "gpt-4o-mini"}, "usage": {"input": 1361, "output": 53}, "tool_calls": exec_("echo hi >> tool.log")},
    {"when": {"model": "gpt-4o-mini"}, "usage": {"input": 1777, "output": 71}, "text": "The command ran."},
    {"when": {"model": "gpt-4o"}, "usage": {"input": 2503, "output": 101}, "text": "The researcher is done."},
]  # fmt: skip
DELEGATION_CHECKS = """
assertions:
  - {type: tool_was_called, tool: sessions_spawn}
  - {type: tool_call_count, tool: exec, count: 1}
  - {type: llm_call_count, min: 5, max: 5}
  - {type: tool_not_permitted, allowed_tools: [sessions_spawn, exec]}
  - {type: delegation_occurred, to_agent: researcher}
  - {type: trace_token_budget, max_total_tokens: 100000}
  - {type: no_span_errors}
"""

READ = [{"name": "read", "arguments": {"path": "plan.txt"}}]
REFUSED: list[dict[str, Any]] = [
    {"tool_calls": exec_("rm -rf build")},
    {"tool_calls": [{"name": "write", "arguments": {"path": "plan.txt", "content": "rest"}}]},
    *[{"tool_calls": READ}] * 4,
    {"text": "Nothing was cleaned."},
]
LOOPS = {"enabled": True, "warningThreshold": 1, "criticalThreshold": 2, "globalCircuitBreakerThreshold": 3}
REFUSED_CHECKS = """
assertions:
  - {type: tool_not_permitted, id: attempted, allowed_tools: [read, write]}
  - {type: tool_not_permitted, id: done, allowed_tools: [read, write], count_blocked: false}
  - {type: tool_not_invoked, id: exec attempted, tool: exec}
  - {type: tool_not_invoked, id: exec done, tool: exec, count_blocked: false}
  - {type: tool_call_count, id: reads, tool: read, count: 4}
"""


def asked_for(run: Judged) -> Counter[str]:
    return Counter(call["name"] for exchange in run.asked if exchange.status == 200 for call in exchange.tool_calls)


def called(run: Judged) -> list[tuple[str, str]]:
    return [(call["name"], call["outcome"]) for call in run.facts["tool_calls"]]


def tokens_of(run: Judged) -> tuple[int, int]:
    """What the model server sent: all input and all output tokens."""
    used = [exchange.usage for exchange in run.asked if exchange.usage is not None]
    return sum(usage["input"] for usage in used), sum(usage["output"] for usage in used)


def totals_of(facts: dict[str, Any]) -> tuple[int | None, int | None]:
    return facts["totals"]["input_tokens"], facts["totals"]["output_tokens"]


def verdicts(run: Judged) -> dict[str, str]:
    return {verdict.id: verdict.status.value for verdict in run.result.verdicts}


def test_two_sessions_with_tools_that_fail(judge) -> None:
    """Verdicts and facts of a real run are true, and what OpenClaw does not record is unknown."""
    (run,) = judge(Play(STEPS, CHECKS, (f"one={COMMANDS}", f"two={TALK}"), {"deny": ["write"]}))
    facts, totals = run.facts, run.facts["totals"]
    answered = [exchange for exchange in run.asked if exchange.status == 200]

    assert run.exit_code == 0
    assert (facts["complete"], facts["incomplete_because"], facts["dialects"]) == (True, [], ["openclaw"])
    assert totals["llm_calls"] == len(answered) == 6
    assert {call["request_model"] for call in facts["llm_calls"]} == {exchange.model for exchange in answered}
    assert asked_for(run) == {"exec": 2, "read": 1, "write": 1}
    assert called(run) == [("exec", "ok"), ("exec", "error"), ("read", "error")]
    assert (run.folder / "workspace" / "tool.log").read_text() == "hello\nboom\n"
    assert run.ended == [(None, 0), (None, 3)]
    assert not (run.folder / "workspace" / "a.txt").exists()
    assert {error["name"] for error in facts["errors"]} == {"exec", "read"}
    assert (totals["input_tokens"], totals["output_tokens"], facts["agents"]) == (None, None, None)
    # A turn of a transcript with a call that no span records fits none: then it fills nothing.
    assert totals_of(run.inspected) in ((None, None), tokens_of(run))
    assert verdicts(run) == {
        "tool_call_count": "pass", "llm_call_count": "pass", "tool_not_invoked": "pass", "tool_was_called": "fail",
        "trace_token_budget": "inconclusive", "no_span_errors": "fail",
    }  # fmt: skip


def test_a_sub_agent_and_a_refused_call_side_by_side(judge) -> None:
    """Two gateways at once: a spawned session's work is in the run that spawned it, a refused call in its own."""
    delegating, refusing = judge(
        Play(
            DELEGATING, DELEGATION_CHECKS, ("one=Please delegate it.",), {"await": {"one": "The researcher is done."}}
        ),
        Play(REFUSED, REFUSED_CHECKS, ("one=Please build.",), {"refuse": "rm -rf", "tools": {"loopDetection": LOOPS}}),
    )
    for run in (delegating, refusing):
        answered = [exchange for exchange in run.asked if exchange.status == 200]
        assert (run.exit_code, run.facts["complete"], run.facts["incomplete_because"]) == (0, True, [])
        assert run.facts["totals"]["llm_calls"] == len(answered) == len(run.asked)
        assert Counter(call["request_model"] for call in run.facts["llm_calls"]) == Counter(e.model for e in answered)
        assert Counter(name for name, _ in called(run)) == asked_for(run)
        assert totals_of(run.inspected) in ((None, None), tokens_of(run))

    assert Counter(exchange.model for exchange in delegating.asked) == {"gpt-4o": 3, "gpt-4o-mini": 2}
    assert called(delegating) == [("sessions_spawn", "ok"), ("exec", "ok")]
    totals = delegating.facts["totals"]
    # The spans name no agent: whose session it was is unknown, and no delegation is made up or denied.
    assert (delegating.facts["agents"], delegating.facts["delegations"], totals["input_tokens"]) == (None, None, None)
    assert verdicts(delegating) == {
        "tool_was_called": "pass", "tool_call_count": "pass", "llm_call_count": "pass", "tool_not_permitted": "pass",
        "delegation_occurred": "inconclusive", "trace_token_budget": "inconclusive", "no_span_errors": "pass",
    }  # fmt: skip

    inspected = delegating.inspected
    names = {agent["name"] for agent in inspected["agents"]}
    assert (names, inspected["delegations"]) == ({"support", "researcher"}, [["support", "researcher"]])
    by_agent = [("support", 1013), ("support", 1129), ("researcher", 1361), ("researcher", 1777), ("support", 2503)]
    assert [(call["agent"], call["input_tokens"]) for call in inspected["llm_calls"]] == by_agent
    assert totals_of(inspected) == tokens_of(delegating)
    assert [(call["agent"], call["name"], call["arguments"]) for call in inspected["tool_calls"]] == [
        ("support", "sessions_spawn", {"task": "Run it.", "agentId": "researcher", "label": "research"}),
        ("researcher", "exec", {"command": "echo hi >> tool.log"}),
    ]
    assert inspected["final_output"] == "The researcher is done."

    # A hook refused the one; the loop detector, whose span stands alone, the other: it knows nothing but the tool's name.
    assert called(refusing) == [
        ("exec", "blocked"), ("write", "ok"), ("read", "ok"), ("read", "ok"), ("read", "ok"), ("read", "blocked"),
    ]  # fmt: skip
    assert verdicts(refusing) == {
        "attempted": "fail", "done": "pass", "exec attempted": "fail", "exec done": "pass", "reads": "pass",
    }  # fmt: skip
