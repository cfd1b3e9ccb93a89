"""Attempts at one run: again only where the infrastructure failed, never where the agent did (spec: config.md §7)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from clawtrace.campaign.planning.expand import PlannedRun
from clawtrace.campaign.running.one_run import RunInterruptedError
from clawtrace.errors import PreconditionError, ReceiverError, RunnerError
from clawtrace.model.verdict import RunResult
from clawtrace.runners.base import StopSignal

__all__ = ["attempt", "attempt_ids"]

_FIRST_WAIT_SECONDS = 1.0
"""Before the second attempt; doubled before each further one."""


def attempt_ids(run_id: str, retries: int) -> list[str]:
    """Return the ids of the attempts at a run, in order: each is a separate run."""
    return [run_id, *(f"{run_id}-attempt{number}" for number in range(2, retries + 2))]


def attempt(
    planned: PlannedRun,
    retries: int,
    run: Callable[[PlannedRun, Sequence[str]], RunResult],
    stop: StopSignal,
    spent: Callable[[], str],
) -> RunResult:
    """Return the result of the first attempt that the infrastructure let through, or of the last one.

    An attempt is a separate run, with its own id, so that no span of a failed one is counted. Again is tried when the
    agent could not be run, when its provider failed (`provider_error`), and when the receiver did.

    Args:
        retries: how often it may be tried again.
        run: runs and judges; given why the attempts before failed.
        stop: ends the wait between attempts.
        spent: says why nothing new may be started; empty while something is left to spend.

    Raises:
        RunInterruptedError: stopped while waiting.
        RunnerError: the last attempt failed so.
        ReceiverError: the last attempt failed so.
    """
    failed: list[str] = []
    for number, run_id in enumerate(attempt_ids(planned.run_id, retries), start=1):
        try:
            result = run(replace(planned, run_id=run_id), failed)
            if result.run_status != "provider_error" or number > retries or spent():
                return result
            why = "the agent's provider failed"
        except PreconditionError:
            raise
        except (RunnerError, ReceiverError) as error:
            if number > retries or spent():
                earlier = "".join(f"; {one}" for one in failed)
                raise type(error)(f"{error}{earlier}") from error
            why = str(error)
        failed.append(f"attempt {number} failed: {why}")
        _wait(_FIRST_WAIT_SECONDS * 2 ** (number - 1), stop)
    raise AssertionError("the last attempt returns or raises")


def _wait(seconds: float, stop: StopSignal) -> None:
    stopped = threading.Event()
    unsubscribe = stop.subscribe(stopped.set)
    try:
        if stopped.wait(seconds):
            raise RunInterruptedError
    finally:
        unsubscribe()
