"""Limits while agents run: places, attempts, the budget, Ctrl-C; and modules loaded meanwhile (spec: config.md §7)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import BoundedSemaphore
from types import FrameType

from clawtrace.campaign.planning.expand import PlannedRun
from clawtrace.errors import (
    CassetteMissError,
    ClawtraceError,
    FaultNotStruckError,
    PreconditionError,
    ReceiverError,
    RunnerError,
)
from clawtrace.model.verdict import RunResult
from clawtrace.runners.base import StopSignal
from clawtrace.session.session import Session

__all__ = ["Budget", "Place", "RunInterruptedError", "attempt", "attempt_ids", "interrupts", "preparing"]


class Budget:
    """Adds up what runs took, each attempt at one by itself; several threads may use it. Reused runs take nothing.

    What was replayed from a cassette was not spent.
    What a run took is known when it has ended: runs that are at work when the budget is spent still end.

    Args:
        max_cost: in US dollars; None for no limit.
        max_tokens: input and output tokens together; None for no limit.
    """

    def __init__(self, max_cost: float | None = None, max_tokens: int | None = None) -> None:
        self._max_cost = max_cost
        self._max_tokens = max_tokens
        self._cost = 0.0
        self._tokens = 0
        self._without_cost = 0
        self._without_tokens = 0
        self._runs = 0
        self._judging_cost = 0.0
        self._judging_tokens = 0
        self._judging_without_cost = 0
        self._lock = threading.Lock()

    @property
    def is_limited(self) -> bool:
        """Whether anything can be spent: without a limit it never is."""
        return self._max_cost is not None or self._max_tokens is not None

    def add(self, result: RunResult) -> None:
        """Count what a run took that was just run.

        A cost counts with its upper bound where there is one, so that a limit is kept, and else with its lower bound.
        """
        totals = result.totals
        with self._lock:
            self._runs += 1
            if result.cassette == "replay":
                return
            cost_high = totals.get("cost_high")
            self._cost += (totals.get("cost_low") or 0.0) if cost_high is None else cost_high
            self._tokens += sum(totals.get(f"{side}_tokens_low") or 0 for side in ("input", "output"))
            self._without_cost += cost_high is None
            self._without_tokens += any(totals.get(f"{side}_tokens") is None for side in ("input", "output"))

    def add_judging(self, cost: float | None, tokens: int) -> None:
        """Count what asking a judge, or a simulated user, once took; `cost` is None where the model has no price."""
        with self._lock:
            self._judging_cost += cost or 0.0
            self._judging_tokens += tokens
            self._judging_without_cost += cost is None

    def spent(self) -> str:
        """Return why nothing new may be started or asked, in one sentence; empty while something is left."""
        with self._lock:
            cost, tokens = self._cost + self._judging_cost, self._tokens + self._judging_tokens
            if self._max_cost is not None and cost >= self._max_cost:
                by_judges = (
                    f", {self._judging_cost:.4f} of it by judges and simulated users" if self._judging_cost else ""
                )
                return f"{cost:.4f} USD have been spent{by_judges}, and `--max-cost` is {self._max_cost:g}{self._unknown_cost()}"
            if self._max_tokens is not None and tokens >= self._max_tokens:
                by_judges = (
                    f", {self._judging_tokens} of them by judges and simulated users" if self._judging_tokens else ""
                )
                return f"{tokens} tokens have been used{by_judges}, and `--max-tokens` is {self._max_tokens}{self._unknown_tokens()}"
            return ""

    def blind_spots(self) -> list[str]:
        """Return what a limit could not see, one sentence each."""
        with self._lock:
            found = []
            if self._max_cost is not None and self._without_cost:
                cost = self._cost + self._judging_cost
                found.append(
                    f"`--max-cost`: {cost:.4f} USD is a lower bound{self._unknown_cost()}; `model_pricing` gives "
                    "models a price, `--max-tokens` limits tokens"
                )
            if self._max_cost is not None and self._judging_without_cost:
                found.append(
                    f"`--max-cost`: the model of a judge or a simulated user has no price, so {self._judging_without_cost} of its answers were not "
                    "counted; `model_pricing` gives it one"
                )
            if self._max_tokens is not None and self._without_tokens:
                tokens = self._tokens + self._judging_tokens
                found.append(f"`--max-tokens`: {tokens} tokens is a lower bound{self._unknown_tokens()}")
            return found

    def _unknown_cost(self) -> str:
        return f" (the cost of {self._without_cost} of {self._runs} runs is not known)" if self._without_cost else ""

    def _unknown_tokens(self) -> str:
        if not self._without_tokens:
            return ""
        return f" (the tokens of {self._without_tokens} of {self._runs} runs are not known)"


# --- attempts ---------------------------------------------------------------------------------------------------------


_FIRST_WAIT_SECONDS = 1.0
"""Before the second attempt; doubled before each further one."""


class RunInterruptedError(Exception):
    """The run was ended by the user before it could be judged."""


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
        except (PreconditionError, CassetteMissError, FaultNotStruckError):
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


# --- places -----------------------------------------------------------------------------------------------------------


class Place:
    """One run's place among the agents at work; as a context manager it is given back at the end."""

    def __init__(self, free: BoundedSemaphore) -> None:
        self._free = free
        self._is_taken = False

    def take(self) -> None:
        """Wait until a place is free, and take it; nothing happens where the run has one."""
        if not self._is_taken:
            self._free.acquire()
            self._is_taken = True

    def give_back(self) -> None:
        """Free the run's place for another agent; does nothing if it has none."""
        if self._is_taken:
            self._is_taken = False
            self._free.release()

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()


# --- while agents work ------------------------------------------------------------------------------------------------


@contextmanager
def preparing(session: Session) -> Iterator[None]:
    """Load what judging needs in the block: the first verdict waits half as long for it."""

    def prepare() -> None:
        with suppress(ClawtraceError):  # what cannot be loaded is reported when it is needed
            session.prepare()

    thread = threading.Thread(target=prepare, name="clawtrace-prepare")
    thread.start()
    try:
        yield
    finally:
        thread.join()


@contextmanager
def interrupts(action: Callable[[int], None]) -> Iterator[None]:
    """Call `action` with the number of each SIGINT (Ctrl-C) and SIGTERM of the block, in place of an exception that may strike anywhere.

    In a thread that is not the main one, which no signal reaches, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(number: int, _frame: FrameType | None) -> None:
        action(number)

    before = {number: signal.signal(number, interrupted) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
