"""A decided verdict suggests the recorded name that differs from the written one by its spelling only."""

from __future__ import annotations

import pytest
from building import Lab, agent, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}


@pytest.fixture
def run(lab: Lab) -> Lab:
    """`boss` calls `issue_refund`, and `helper`, to whom it delegates, calls `get_user`."""
    return lab.put(
        agent("b", agent="boss", at=1, to=100),
        tool("t1", "b", at=10, tool="issue_refund"),
        agent("h", "b", at=20, to=50, agent="helper"),
        tool("t2", "h", at=30, tool="get_user"),
    )


def test_a_decided_verdict_suggests_the_recorded_name(run: Lab) -> None:
    """Another letter case, another separator or a slip; not a name that is merely similar, and not for patterns."""
    questions = [
        ({"type": "tool_was_called", "tool": "Issue_Refund"}, "issue_refund"),
        ({"type": "tool_was_called", "tool": "issueRefund"}, "issue_refund"),
        ({"type": "tool_call", "tool": "isue_refund"}, "issue_refund"),
        ({"type": "tool_call", "tool": "get_user", "by_agent": "Helper"}, "helper"),
        ({"type": "tool_call_count", "tool": "issue-refund", "min": 1}, "issue_refund"),
        ({"type": "tool_sequence", "expected": ["issue_refund", "get_users"]}, "get_user"),
        ({"type": "delegation_occurred", "to_agent": "Helper"}, "helper"),
        ({"type": "delegation_path", "expected": ["Boss", "helper"]}, "boss"),
        ({"type": "tool_not_invoked", "tool": "Issue-Refund"}, "issue_refund"),
        ({"type": "tool_call_count", "tool": "issueRefund", "max": 3}, "issue_refund"),
        ({"type": "span_query", "select": {"kind": "tool", "tool_name": "Get_User"}, "count": {"max": 3}}, "get_user"),
        ({"type": "tool_not_invoked", "tool": "get_user"}, ""),
        ({"type": "tool_was_called", "tool": "set_user"}, ""),
        ({"type": "tool_was_called", "tool": "glob:Issue*"}, ""),
        ({"type": "tool_call", "tool": "get_user", "args": {"id": 1}}, ""),
    ]
    run.facts.ensure(["r"])
    assertions = [parse_assertion(asked | {"id": f"a{number}"}) for number, (asked, _) in enumerate(questions)]
    (result,) = evaluate(run.store, assertions, ["r"], DIALECTS, scoped=run.facts.scoped)

    for (asked, meant), verdict in zip(questions, result.verdicts, strict=True):
        forbids = asked["type"] == "tool_not_invoked" or "max" in {**asked, **asked.get("count", {})}
        assert verdict.status == ("pass" if forbids else "fail") or not meant, verdict.message
        assert (f"`{meant}` is recorded" in verdict.hint) if meant else not verdict.hint.startswith("`"), asked
