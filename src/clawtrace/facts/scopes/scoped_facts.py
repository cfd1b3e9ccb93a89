"""The relations as one scope sees them: for many runs, what belongs to an agent or a turn, and nothing else.

Inside of `ScopedFacts.holding` temporary tables hide the relations, so that every question is asked of the scope in the
very words in which it is asked of whole runs. `attributes` stay as they are: they are reached through their spans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from clawtrace.dialects.rules import ShellRule
from clawtrace.facts.columns import columns, columns_of
from clawtrace.facts.runs.run_facts import RunFacts
from clawtrace.facts.scopes.scopes import Scope, part_of
from clawtrace.facts.spans.span import Span
from clawtrace.model.relations import RELATIONS
from clawtrace.model.verdict import Evidence
from clawtrace.store.api import FactStore

__all__ = ["RunScope", "ScopedFacts"]

_NAMED = 3
"""Activations that evidence names."""

_FROM_PARTS = tuple(name for name in RELATIONS if name not in ("runs", "spans", "attributes", "messages", "judgements"))

_SCOPED = {
    "scoped_spans": {"run_id": "text", "trace_id": "text", "span_id": "text"},
    "scoped_runs": {"run_id": "text", "final_output": "text", "answered": "boolean"},
}

_KEPT = {
    "spans": "SELECT r.* FROM spans AS r JOIN scoped_spans AS k ON k.run_id = r.run_id AND k.trace_id = r.trace_id "
    "AND k.span_id = r.span_id",
    "messages": "SELECT r.* FROM messages AS r SEMI JOIN scoped_spans AS k ON k.run_id = r.run_id AND k.span_id = r.span_id",
    "runs": "SELECT r.* REPLACE (k.final_output AS final_output, k.answered AS answered) FROM runs AS r "
    "JOIN scoped_runs AS k ON k.run_id = r.run_id",
}


class RunScope(NamedTuple):
    """What is to be known of a scope in one run, in addition to its rows."""

    empty: str
    """Why nothing is in, as a sentence; empty when something is."""
    reason: str
    """Where that is because something is not known: one of `REASONS`."""
    evidence: tuple[Evidence, ...]
    """The activations of the agent."""


class ScopedFacts:
    """One scope over many runs.

    Args:
        store: holds the facts of the runs.
        scope: what belongs to it.
    """

    def __init__(self, store: FactStore, scope: Scope) -> None:
        self._store = store
        self.scope = scope
        self.runs: dict[str, RunScope] = {}
        """By run id."""
        self._rows: dict[str, list[tuple[Any, ...]]] = {}

    def add(self, facts: RunFacts, shells: Callable[[str, str], Sequence[ShellRule]]) -> None:
        """Take in what of a run belongs to the scope.

        Args:
            facts: of the whole run, priced and summed up.
            shells: see `RunFacts.rows`.
        """
        part = part_of(facts, self.scope)
        run_id, spans = facts.run_id, facts.spans.spans
        self.runs[run_id] = RunScope(part.empty, part.reason, _marks(spans, part.marks))
        if part.facts is not None:
            kept = [(run_id, spans[index].trace_id, spans[index].span_id) for index in part.spans]
            rows = part.facts.rows(shells) | {
                "scoped_spans": kept,
                "scoped_runs": [(run_id, part.answer, part.answered)],
            }
            for name, of_run in rows.items():
                self._rows.setdefault(name, []).extend(of_run)

    def keep(self, run_ids: Collection[str]) -> None:
        """Forget other runs; their rows are never read."""
        self.runs = {run_id: self.runs[run_id] for run_id in run_ids if run_id in self.runs}

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Let the relations hold, inside, what belongs to the scope; rows that may belong to it are not certain."""
        rows, store = self._rows, self._store
        hidden: list[str] = []
        with store.lock:
            for name, types in _SCOPED.items():
                store.load(name, columns(types, rows.get(name, [])))
            try:
                for name, select in _KEPT.items():
                    store.script(f"CREATE TEMP TABLE {name} AS {select}")
                    hidden.append(name)
                for name in _FROM_PARTS:
                    store.load("scoped_rows", columns_of(name, rows.get(name, [])))
                    store.script(f"CREATE TEMP TABLE {name} AS SELECT * FROM scoped_rows")
                    hidden.append(name)
                yield
            finally:
                for name in hidden:
                    store.script(f"DROP TABLE temp.{name}")


def _marks(spans: Sequence[Span], marks: Sequence[int]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(span.trace_id, span.span_id, span.name, f"agent {span.agent_name} begins here", span.start_ns)
        for span in (spans[index] for index in marks[:_NAMED])
    )
