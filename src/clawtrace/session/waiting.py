"""Questions of several threads that wait for one store: those that can be asked together, and how each gets its own answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clawtrace.errors import ClawtraceError
from clawtrace.model.verdict import RunResult, Status

if TYPE_CHECKING:
    from clawtrace.verdicts.combined import WaitingQuestion

__all__ = ["Waiting", "answer"]


class Waiting:
    """The questions of several threads that wait for one store; the store's lock is the caller's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._questions: list[WaitingQuestion] = []

    @contextmanager
    def waits(self, question: WaitingQuestion) -> Iterator[None]:
        """Let other threads see the query while its caller waits."""
        with self._lock:
            self._questions.append(question)
        try:
            yield
        finally:
            with self._lock:
                if question in self._questions:
                    self._questions.remove(question)

    def run_ids(self) -> list[str]:
        """Return the runs that are about to be judged, in the order in which they came."""
        with self._lock:
            return list(dict.fromkeys(run_id for one in self._questions for run_id in one.run_ids))

    def company_of(self, question: WaitingQuestion, known: Iterable[str]) -> list[WaitingQuestion]:
        """Return the waiting queries that can be asked together with this one, this one first; the others stop waiting.

        They are of at most as many runs as keep each verdict to the values of its own run.

        Args:
            question: whose caller has the store.
        """
        from clawtrace.verdicts.asking.ask import OWN_VALUES

        if question.alone:
            return [question]
        asked = set(question.run_ids)
        found = [question]
        there = set(known)
        with self._lock:
            for one in list(self._questions):
                runs = set(one.run_ids)
                fits = one.evidence_of_passes == question.evidence_of_passes and runs <= there
                fits = fits and len(asked) + len(runs) <= OWN_VALUES
                if one is not question and not one.alone and fits and asked.isdisjoint(runs):
                    found.append(one)
                    asked |= runs
                    self._questions.remove(one)
        return found


def answer(
    questions: Sequence[WaitingQuestion], ask: Callable[[Sequence[WaitingQuestion]], Mapping[str, RunResult]]
) -> None:
    """Answer the first of `questions`, and those of the others whose verdicts nothing disturbed.

    A question that cannot be judged in company (a pattern takes too long on another run's texts) is left to its caller, to be
    asked alone: an error must be the run's own.

    Args:
        questions: of which runs no two ask.
        ask: returns the result of each run, by run id.
    """
    first, *others = questions
    if others:
        try:
            results = ask(questions)
        except ClawtraceError:
            results = {}
        for one in questions:
            own = [results[run_id] for run_id in one.run_ids if run_id in results]
            whole = len(own) == len(one.run_ids)
            if whole and all(standing.status is not Status.ERROR for result in own for standing in result.standings):
                one.results = own
            else:
                one.alone = True
    if first.results is None:
        results = ask([first])
        first.results = [results[run_id] for run_id in first.run_ids]
