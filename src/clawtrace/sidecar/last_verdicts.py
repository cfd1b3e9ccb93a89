"""The verdicts that a service gave last, for its page."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from clawtrace.model.verdict import RunResult

__all__ = ["LastVerdicts"]

_MOST = 5_000
"""Verdicts that are kept: some 6 KB each, most of it their SQL."""


class LastVerdicts:
    """Of each run its last result, of the runs that were judged last; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: dict[str, RunResult] = {}
        self._verdicts = 0

    def put(self, result: RunResult) -> None:
        """Keep a result in place of an earlier one of the run; the oldest go where there are too many."""
        with self._lock:
            self._drop(result.run_id)
            self._results[result.run_id] = result
            self._verdicts += len(result.verdicts)
            while self._verdicts > _MOST and len(self._results) > 1:
                self._drop(next(iter(self._results)))

    def forget(self, run_ids: Iterable[str]) -> None:
        """Drop the results of runs that are deleted."""
        with self._lock:
            for run_id in run_ids:
                self._drop(run_id)

    def _drop(self, run_id: str) -> None:
        result = self._results.pop(run_id, None)
        self._verdicts -= len(result.verdicts) if result else 0

    def of(self, run_id: str) -> RunResult | None:
        """Return the last result of a run; None where it was not judged, or long ago."""
        with self._lock:
            return self._results.get(run_id)

    def counts(self, run_id: str) -> dict[str, int] | None:
        """Return how many verdicts of each status a run was given last."""
        result = self.of(run_id)
        return None if result is None else dict(Counter(one.status.value for one in result.standings))
