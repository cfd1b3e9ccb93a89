"""A real OpenClaw, run and judged: what clawtrace says of it is what the model server and the tools' own log say.

Two sessions run side by side in one gateway. OpenClaw 2026.4.27 records neither usage nor arguments in its spans: those
are unknown, and what asks for them is inconclusive. A tool that is denied is not offered; a model that asks for it all the
same is turned away, and no span tells of it: nothing was executed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

COMMANDS, TALK = "Please run the commands.", "Just say hello."
STEPS: list[dict[str, Any]] = [
    {"when": {"user": "run the commands"}, "tool_calls": [{"name": "exec", "arguments": {"command": "echo hello >> tool.log"}}]},
    {"when": {"user": "run the commands"}, "tool_calls": [{"name": "exec", "arguments": {"command": "echo boom >> tool.log; exit 3"}}]},
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


@pytest.mark.timeout(900)
def test_two_sessions_with_tools_that_fail(judge) -> None:
    """Verdicts and facts of a real run are true, and what OpenClaw does not record is unknown."""
    run = judge(STEPS, CHECKS, f"one={COMMANDS}", f"two={TALK}", deny=["write"])
    facts, totals = run.facts, run.facts["totals"]
    answered = [exchange for exchange in run.asked if exchange.status == 200]
    requested = Counter(call["name"] for exchange in answered for call in exchange.tool_calls)

    assert run.exit_code == 0
    assert (facts["complete"], facts["incomplete_because"], facts["dialects"]) == (True, [], ["openclaw"])
    assert totals["llm_calls"] == len(answered) == 6
    assert {call["request_model"] for call in facts["llm_calls"]} == {exchange.model for exchange in answered}
    assert requested == {"exec": 2, "read": 1, "write": 1}
    assert [(call["name"], call["outcome"]) for call in facts["tool_calls"]] == [
        ("exec", "ok"), ("exec", "error"), ("read", "error"),
    ]  # fmt: skip
    assert (run.workspace / "tool.log").read_text() == "hello\nboom\n"
    assert not (run.workspace / "a.txt").exists()
    assert {error["name"] for error in facts["errors"]} == {"exec", "read"}
    assert (totals["input_tokens"], totals["output_tokens"], facts["agents"]) == (None, None, None)
    assert {v.type: v.status.value for v in run.result.verdicts} == {
        "tool_call_count": "pass", "llm_call_count": "pass", "tool_not_invoked": "pass", "tool_was_called": "fail",
        "trace_token_budget": "inconclusive", "no_span_errors": "fail",
    }  # fmt: skip
