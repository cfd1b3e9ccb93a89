"""Agent spans that record no work: which of them are activations, and which are turns."""

from __future__ import annotations

from typing import Any

from building import Lab, S, agent, chat, says
from instrumented import ACTIVATIONS

OTHER = f"{2:032x}"
ANSWER = "SELECT final_output FROM runs WHERE run_id = :run"
TURNS = "SELECT DISTINCT turn FROM spans WHERE run_id = :run ORDER BY turn"


def caller(id: str, at: int = 0, to: int = 100, name: str | None = "assistant", **attrs: Any) -> S:
    """The caller's side of a remote agent, in a separate trace."""
    span = agent(id, at=at, to=to, agent=name, **attrs)
    span.kind, span.trace = "Client", OTHER
    return span


def work(*, at: int = 10, to: int = 90, name: str = "assistant") -> list[S]:
    """A turn that was answered."""
    call = chat(f"m{at}", f"a{at}", at=at + 1, **{"gen_ai.output.messages": says(f"said at {at}")})
    return [agent(f"a{at}", at=at, to=to, agent=name), call]


def test_the_callers_side_hides_no_answer(lab: Lab) -> None:
    lab.put(caller("c"), *work())

    assert lab.rows(ACTIVATIONS) == [("assistant", None, "root"), ("assistant", None, "root")]
    assert lab.rows(ANSWER) == [("said at 10",)]
    assert lab.rows(TURNS) == [(1,), (None,)]


def test_calls_that_nothing_else_records_are_agents(lab: Lab) -> None:
    lab.put(caller("c"), caller("d", at=10, to=20))

    assert len(lab.rows(ACTIVATIONS)) == 2


def test_an_agent_that_leaves_nothing_behind_is_no_last_turn(lab: Lab) -> None:
    """One before the others, one that failed, and one in a run that records nothing else are turns."""
    last = caller("z", at=200, to=201)
    last.kind = "Internal"
    lab.put(*work(), last)
    lab.put(caller("y", to=1), *work(), run="first")
    failed = caller("x", at=200, to=201)
    failed.error = "no connection"
    lab.put(*work(), failed, run="failed")
    lab.put(caller("w"), run="alone")

    assert (lab.rows(ANSWER), lab.rows(TURNS)) == ([("said at 10",)], [(1,), (None,)])
    assert (lab.rows(ANSWER, "first"), lab.rows(TURNS, "first")) == ([("said at 10",)], [(1,), (2,)])
    assert (lab.rows(ANSWER, "failed"), lab.rows(TURNS, "failed")) == ([(None,)], [(1,), (2,)])
    assert lab.rows(TURNS, "alone") == [(1,)]
