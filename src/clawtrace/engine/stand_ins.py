"""Logs that stand in for spans: who asks for one, and which runs have no other spans."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.assertions._log_source import LogSource
from clawtrace.assertions.base import Assertion
from clawtrace.store.duckdb import DuckStore

__all__ = ["names_a_log", "stand_ins"]

_LOGS = 'SELECT run_id FROM run_records WHERE record LIKE \'%"log": "%\''


def names_a_log(assertions: Sequence[Assertion]) -> bool:
    """Return whether any of `assertions` names a log."""
    return any(isinstance(one, LogSource) and one.log_path is not None for one in assertions)


def stand_ins(store: DuckStore) -> set[str]:
    """Return the runs whose record names the log that their spans were made of: they have no trace of their own."""
    return {run_id for (run_id,) in store.script(_LOGS)}
