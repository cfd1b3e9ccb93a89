"""Processes of one run whose clocks differ: what ran when, and what came last, is unknown (spec: span-model.md §4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from building import Lab, S, agent, chat, says, tool

from clawtrace.facts.spans.span import REMOTE_PARENT

BEGAN = 36_000_000
"""Milliseconds."""
DOUBTED = "SELECT s.name FROM spans AS s JOIN doubts AS d ON d.row_no = s.tree_enter WHERE d.relation = 'spans' AND d.column_name = 'start_ns' ORDER BY s.tree_enter"
"""Spans of which it is unknown when they started."""


def of_worker(span: S, skew: int) -> S:
    """A span of another process, whose clock is ahead by `skew` milliseconds."""
    return replace(span, at=span.at + skew, to=(span.to or 0) + skew)


def called(lab: Lab, skew: int, *more: S) -> Lab:
    """Put a run in which `helper` worked in another process while `boss` waited for it."""
    worked: list[S] = [
        replace(agent("b", "a", at=BEGAN + 10, to=BEGAN + 30, agent="helper"), flags=REMOTE_PARENT),
        chat("b1", "b", at=BEGAN + 11, **{"gen_ai.output.messages": says("of the helper")}),
        tool("b2", "b", at=BEGAN + 20, tool="write"),
    ]
    root = agent("a", at=BEGAN, to=BEGAN + 90, agent="boss")
    return lab.put(root, *(of_worker(span, skew) for span in worked), *more)


def own() -> list[S]:
    """What others than `helper` did."""
    answer: dict[str, Any] = {"gen_ai.output.messages": says("done")}
    return [
        agent("c", "a", at=BEGAN + 1, to=BEGAN + 9, agent="alpha"),
        tool("t", "a", at=BEGAN + 50, tool="read"),
        chat("m", "a", at=BEGAN + 60, **answer),
    ]


@pytest.mark.parametrize("skew", [-7_200_000, -500, 500, 5_000, 7_200_000])
def test_a_process_whose_clock_differs(lab: Lab, skew: int) -> None:
    """Its agents and calls have no place among the others', its answer may not be the last, and how long it took is unknown."""
    called(lab, skew, *own())

    assert lab.rows("SELECT name FROM agents WHERE start_ns IS NULL") == [("helper",)]
    assert lab.rows("SELECT name FROM tool_calls WHERE start_ns IS NULL") == [("write",)]
    assert lab.rows(DOUBTED) == [("invoke_agent",), ("chat b1",), ("execute_tool write",)]
    assert lab.rows("SELECT final_output, answered FROM runs") == [(None, None)]
    assert lab.totals("last_end_ns", "busy_ns") == (None, None)


@pytest.mark.parametrize("skew", [-40, 0, 40])
def test_clocks_that_are_kept_in_time(lab: Lab, skew: int) -> None:
    called(lab, skew, *own())

    assert lab.rows("SELECT name FROM agents WHERE start_ns IS NULL") == lab.rows(DOUBTED) == []
    assert lab.rows("SELECT final_output FROM runs") == [("done",)]


def test_a_process_that_did_all_of_the_work(lab: Lab) -> None:
    """A queue may have held its work: nothing else is there that it could be before or after."""
    called(lab, 5_000)

    assert lab.rows("SELECT start_ns IS NULL FROM agents") == [(False,), (False,)]
    assert lab.rows("SELECT start_ns IS NULL FROM tool_calls") == [(False,)]
    assert lab.rows("SELECT final_output FROM runs") == [("of the helper",)]
    assert lab.totals("last_end_ns") == ((BEGAN + 5_030) * 1_000_000,)


def test_work_that_a_program_goes_on_with_after_its_agent_has_ended(lab: Lab) -> None:
    """In one process there is one clock."""
    lab.put(
        agent("a", at=BEGAN, to=BEGAN + 90),
        tool("t", "a", at=BEGAN + 50, tool="read"),
        tool("u", "a", at=BEGAN + 5_000, tool="write"),
    )

    assert lab.rows("SELECT start_ns IS NULL FROM tool_calls") == [(False,), (False,)]


@pytest.mark.parametrize("held", [200, 5_000])
def test_work_that_a_queue_held(lab: Lab, held: int) -> None:
    """What hands a task to a queue does not wait for it, and the agent around it still works: nothing says that a clock is ahead."""
    lab.put(
        agent("a", at=BEGAN, to=BEGAN + 90_000),
        S("q", "a", BEGAN + 1, BEGAN + 2, name="StartActivity:write"),
        S("w", "q", BEGAN + 1 + held, BEGAN + 30 + held, name="RunActivity:write", flags=REMOTE_PARENT),
        tool("u", "w", at=BEGAN + 10 + held, tool="write"),
        tool("t", "a", at=BEGAN + 20_000, tool="read"),
    )

    assert lab.rows("SELECT name FROM tool_calls WHERE start_ns IS NOT NULL ORDER BY call_no") == [
        ("write",),
        ("read",),
    ]
