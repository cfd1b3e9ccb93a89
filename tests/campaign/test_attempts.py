"""Attempts at one run: how often, with which ids, how long apart, and what is never tried again."""

from __future__ import annotations

import pytest

from clawtrace.campaign.running import at_work
from clawtrace.campaign.running.at_work import RunInterruptedError
from clawtrace.errors import PreconditionError, ReceiverError, RunnerError
from clawtrace.model.verdict import RunResult
from clawtrace.runners.base import StopSignal


def ended(run_status: str) -> RunResult:
    return RunResult("r", "c", None, 1, None, (), run_status)


class Runs:
    """What the attempts come to, one after the other; keeps what each was given."""

    def __init__(self, *outcomes) -> None:
        self._outcomes = iter(outcomes)
        self.ids: list[str] = []
        self.failures: list[list[str]] = []

    def __call__(self, planned, failed) -> RunResult:
        self.ids.append(planned.run_id)
        self.failures.append(list(failed))
        outcome = next(self._outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def tried(planned, retries, runs, *, stop=None, spent=lambda: "") -> RunResult:
    return at_work.attempt(planned, retries, runs, stop or StopSignal(), spent)


@pytest.fixture
def planned(project):
    project.case("a", "true")
    return project.plan().runs[0]


@pytest.fixture
def waits(monkeypatch) -> list[float]:
    """The seconds between attempts, which no test waits."""
    found: list[float] = []
    monkeypatch.setattr(at_work, "_wait", lambda seconds, _stop: found.append(seconds))
    return found


def test_what_the_infrastructure_broke_is_tried_again_with_doubled_waits(planned, waits):
    """Each attempt is a separate run and is given the reasons why those before it failed."""
    runs = Runs(RunnerError("no such image"), ReceiverError("disk full"), ended("provider_error"), ended("success"))

    assert tried(planned, 3, runs).run_status == "success"
    assert runs.ids == [planned.run_id, *(f"{planned.run_id}-attempt{number}" for number in (2, 3, 4))]
    assert waits == [1, 2, 4]
    assert runs.failures[0] == []
    assert runs.failures[-1] == [
        "attempt 1 failed: no such image",
        "attempt 2 failed: disk full",
        "attempt 3 failed: the agent's provider failed",
    ]


@pytest.mark.parametrize("status", ["success", "failed", "timed_out", "invalid"])
def test_what_the_agent_did_is_never_tried_again(planned, waits, status):
    runs = Runs(ended(status))

    assert tried(planned, 5, runs).run_status == status
    assert (len(runs.ids), waits) == (1, [])


def test_a_precondition_that_does_not_hold_is_never_tried_again(planned, waits):
    runs = Runs(PreconditionError("no key"))

    with pytest.raises(PreconditionError, match=r"^no key$"):
        tried(planned, 5, runs)
    assert (len(runs.ids), waits) == (1, [])


@pytest.mark.parametrize("retries", [0, 1])
def test_the_last_attempt_is_what_it_comes_to(planned, waits, retries):
    """A provider's failure is a result; there is no wait after it."""
    runs = Runs(*[ended("provider_error")] * (retries + 1))

    assert tried(planned, retries, runs).run_status == "provider_error"
    assert (len(runs.ids), len(waits)) == (retries + 1, retries)


def test_the_last_error_names_those_before_it(planned, waits):
    """The same error, so that the exit code is the same."""
    runs = Runs(RunnerError("first"), ReceiverError("second"))

    with pytest.raises(ReceiverError, match=r"^second; attempt 1 failed: first$"):
        tried(planned, 1, runs)
    assert len(waits) == 1


def test_nothing_is_tried_again_when_the_budget_is_spent(planned, waits):
    """An attempt spends like any run: the last one is what it comes to."""
    provider, broken = Runs(ended("provider_error")), Runs(RunnerError("no such image"))

    assert tried(planned, 5, provider, spent=lambda: "all was spent").run_status == "provider_error"
    with pytest.raises(RunnerError, match=r"^no such image$"):
        tried(planned, 5, broken, spent=lambda: "all was spent")
    assert (len(provider.ids), len(broken.ids), waits) == (1, 1, [])


def test_stopping_ends_the_wait(planned, monkeypatch):
    """At once, before another attempt is begun."""
    monkeypatch.setattr(at_work, "_FIRST_WAIT_SECONDS", 3600)
    stop = StopSignal()
    stop.set()
    runs = Runs(RunnerError("broken"))

    with pytest.raises(RunInterruptedError):
        tried(planned, 1, runs, stop=stop)
    assert len(runs.ids) == 1


def test_the_wait_leaves_nothing_behind(planned, monkeypatch):
    """No callback is called by a stop that comes later."""
    monkeypatch.setattr(at_work, "_FIRST_WAIT_SECONDS", 0.001)
    stop = StopSignal()

    assert tried(planned, 1, Runs(RunnerError("x"), ended("success")), stop=stop).run_status == "success"
    assert stop._callbacks == {}
