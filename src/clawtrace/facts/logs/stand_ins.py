"""Runs whose spans were made from a log, because no trace of them arrived."""

from __future__ import annotations

from clawtrace.store.api import FactStore

__all__ = ["stand_ins"]

_LOGS = 'SELECT run_id FROM run_records WHERE record LIKE \'%"log": "%\''


def stand_ins(store: FactStore) -> set[str]:
    """Return the runs whose record names the log that their spans were made of: they have no trace."""
    return {run_id for (run_id,) in store.script(_LOGS)}
