"""The check that an agent ended well, added to runs whose record says that it did not, if no assertion asks it."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.assertions._runner_word import RunnerWord
from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import parse_assertion
from clawtrace.model.verdict import RunResult, Verdict, run_status_of
from clawtrace.session.session import Session

__all__ = ["asked_of_the_end", "with_ends"]

_BROKE = ("failed", "timed_out", "provider_error")
_ENDED_WELL = {
    "type": "status_is",
    "status": "success",
    "id": "agent_ended_well",
    "description": "An agent that exits with an error or reaches its time limit has failed, unless the case asks how it ended.",
}


def asked_of_the_end(assertions: Sequence[Assertion], run_status: str | None) -> list[Assertion]:
    """Return the assertions on a run; one whose agent failed is checked for that too, where none of them asks how it ended.

    So an agent that exits with an error or never ends is red, whether its spans came or not, and good runs are asked nothing more.
    """
    asks = any(isinstance(one, RunnerWord) and one.asks_of_the_end and one.severity == "error" for one in assertions)
    # Where the case lets every one of its assertions fail now and then, an agent may break as often: all its runs are asked.
    minimum = max((one.min_pass_rate for one in assertions), default=1.0)
    if asks or not (run_status in _BROKE or minimum < 1):
        return list(assertions)
    return [*assertions, parse_assertion({**_ENDED_WELL, "min_pass_rate": minimum})]


def with_ends(session: Session, results: list[RunResult], assertions: Sequence[Assertion]) -> list[RunResult]:
    """Return the results of runs that are there; those whose agent broke are checked for that, too."""
    broken = [one.run_id for one in results if one.run_status in _BROKE]
    more = asked_of_the_end(assertions, "failed")[len(assertions) :]
    if not (assertions and broken and more):
        return results
    ended = {one.run_id: one.verdicts for one in session.evaluate(broken, more)}
    return [_with(one, ended[one.run_id]) if one.run_id in ended else one for one in results]


def _with(result: RunResult, more: Sequence[Verdict]) -> RunResult:
    verdicts = (*result.verdicts, *more)
    return result._replace(verdicts=verdicts, status=run_status_of(verdicts))
