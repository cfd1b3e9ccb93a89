"""What may come, got lost or is not recorded is a gap, and rows that it may change are not certain."""

from __future__ import annotations

from dataclasses import replace

from building import Lab, agent, chat, tool

from clawtrace.facts.runs.gaps import UNFINISHED
from clawtrace.model.run import RunRecord

OPEN = RunRecord("r", "r")


def test_an_open_run_may_have_more_of_everything(lab: Lab) -> None:
    lab.put(agent("a"), chat("m", "a", at=1), tool("t", "a", at=10), record=OPEN)

    gaps = lab.rows("SELECT relation, at_most FROM gaps WHERE reason = 'run_open'")
    assert gaps == [(relation, None) for relation in UNFINISHED]
    assert lab.rows("SELECT llm_calls_low, llm_calls_high, tool_calls_low, tool_calls_high FROM run_totals") == [
        (1, None, 1, None)
    ]
    assert lab.rows("SELECT reason FROM doubts WHERE relation = 'runs'") == [("run_open",)]


def test_what_has_not_ended_in_an_open_run_is_not_certain(lab: Lab) -> None:
    lab.put(agent("a"), chat("m", "a", at=1), replace(tool("t", "a", at=10), to=0), record=OPEN)

    assert lab.rows("SELECT certain FROM llm_calls UNION ALL SELECT certain FROM tool_calls") == [(True,), (False,)]


def test_who_called_an_agent_below_a_lost_span_is_unknown(lab: Lab) -> None:
    """None is another thing: that of the first one is known."""
    lab.put(
        agent("a", agent="one"), chat("m", "a"), agent("b", "gone", at=200, to=300, agent="two"), chat("n", "b", at=201)
    )

    assert lab.rows("SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no") == [
        ("one", None, "root"),
        ("two", None, None),
    ]
    assert ("via", "missing_parent") in lab.rows("SELECT column_name, reason FROM doubts WHERE relation = 'agents'")


def test_retries_in_an_sdk_are_one_gap(lab: Lab) -> None:
    lab.put(agent("a"), chat("m", "a"), chat("n", "a", at=20))

    assert lab.rows("SELECT outcome, at_most FROM gaps WHERE relation = 'llm_calls'") == [("error", None)]
    assert lab.totals("llm_calls", "failed_llm_attempts_low", "failed_llm_attempts_high") == (2, 0, None)
