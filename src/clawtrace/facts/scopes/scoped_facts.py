"""The relations as one scope sees them: for many runs, what belongs to an agent or a turn, and nothing else.

Inside of `ScopedFacts.holding` temporary tables hide the relations, so that every question is asked of the scope in the
very words in which it is asked of whole runs. `attributes` stay as they are: they are reached through their spans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from clawtrace.dialects.rules import ShellRule
from clawtrace.facts.runs.run_facts import RunFacts, columns
from clawtrace.facts.scopes.scopes import IN, PERHAPS, Scope, ScopePart, part_of
from clawtrace.facts.spans.span import Span
from clawtrace.model.relations import RELATIONS
from clawtrace.model.verdict import Evidence
from clawtrace.store.api import FactStore

__all__ = ["RunScope", "ScopedFacts"]

_NAMED = 3
"""Activations that evidence names, and spans in doubt."""

_FROM_PARTS = tuple(name for name in RELATIONS if name not in ("runs", "spans", "attributes", "messages", "judgements"))

_KEPT = {
    "spans": "SELECT r.* FROM spans AS r JOIN scoped_spans AS k ON k.run_id = r.run_id AND k.trace_id = r.trace_id "
    "AND k.span_id = r.span_id",
    "messages": "SELECT r.* FROM messages AS r SEMI JOIN scoped_spans AS k ON k.run_id = r.run_id AND k.span_id = r.span_id",
    "runs": "SELECT r.* REPLACE (k.final_output AS final_output) FROM runs AS r JOIN scoped_runs AS k ON k.run_id = r.run_id",
}


class RunScope(NamedTuple):
    """What is to be known of a scope in one run, in addition to its rows."""

    steady: bool
    """Whether what is in stays in when more spans arrive."""
    empty: str
    """Why nothing is in, as a sentence; empty when something is."""
    missing: str
    """Where nothing is in the unknown fact; ``scope`` when none is."""
    in_doubt: str
    """The missing fact that decides what else is in; empty when nothing is in doubt."""
    doubts: Mapping[str, int]
    """What is in doubt, by words."""
    evidence: tuple[Evidence, ...]
    """The activations of the agent."""
    doubtful: tuple[Evidence, ...]
    """Spans that are in doubt."""


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
        self._rows: dict[int, dict[str, list[tuple[Any, ...]]]] = {least: {} for least in (IN, PERHAPS)}

    def add(
        self,
        facts: RunFacts,
        records: Callable[[Span, str], bool | str],
        shells: Callable[[str, str], Sequence[ShellRule]],
    ) -> None:
        """Take in what of a run belongs to the scope.

        Args:
            facts: of the whole run, priced and summed up.
            records: see `ScopePart.narrowed`.
            shells: see `RunFacts.rows`.
        """
        part = part_of(facts, self.scope)
        self.runs[facts.run_id] = RunScope(
            part.steady, part.empty, part.missing, part.in_doubt, part.doubts, _marks(part), _doubtful(part)
        )
        if not part.empty:
            self._add(part, IN, records, shells)
            if part.in_doubt:
                self._add(part, PERHAPS, records, shells)

    def keep(self, run_ids: Collection[str]) -> None:
        """Forget other runs; their rows are never read."""
        self.runs = {run_id: self.runs[run_id] for run_id in run_ids if run_id in self.runs}

    def _add(
        self,
        part: ScopePart,
        least: int,
        records: Callable[[Span, str], bool | str],
        shells: Callable[[str, str], Sequence[ShellRule]],
    ) -> None:
        narrowed, answer = part.narrowed(least, records)
        rows = dict(narrowed.rows(shells))
        run_id, spans = part.facts.run_id, part.facts.spans.spans
        rows["scoped_spans"] = [
            (run_id, span.trace_id, span.span_id)
            for span, state in zip(spans, part.spans, strict=True)
            if state >= least
        ]
        rows["scoped_runs"] = [(run_id, answer)]
        for name, of_run in rows.items():
            self._rows[least].setdefault(name, []).extend(of_run)

    @contextmanager
    def holding(self, least: int) -> Iterator[None]:
        """Let the relations hold, inside, what belongs to the scope: with what is in doubt (`PERHAPS`) or without (`IN`)."""
        rows, store = self._rows[least], self._store
        hidden: list[str] = []
        with store.lock:
            _load(store, "scoped_spans", ("run_id", "trace_id", "span_id"), rows.get("scoped_spans", []))
            _load(store, "scoped_runs", ("run_id", "final_output"), rows.get("scoped_runs", []))
            try:
                for name, select in _KEPT.items():
                    store.script(f"CREATE TEMP TABLE {name} AS {select}")
                    hidden.append(name)
                for name in _FROM_PARTS:
                    store.load("scoped_rows", columns(name, rows.get(name, [])))
                    store.script(f"CREATE TEMP TABLE {name} AS SELECT * FROM scoped_rows")
                    hidden.append(name)
                yield
            finally:
                for name in hidden:
                    store.script(f"DROP TABLE temp.{name}")


def _load(store: FactStore, name: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    values = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    store.load(name, {column: ("text", of) for column, of in zip(names, values, strict=True)})


def _marks(part: ScopePart) -> tuple[Evidence, ...]:
    spans = [part.facts.spans.spans[index] for index in part.marks[:_NAMED]]
    return tuple(_evidence(span, f"agent {span.agent_name} begins here") for span in spans)


def _doubtful(part: ScopePart) -> tuple[Evidence, ...]:
    spans = [
        span
        for span, state in zip(part.facts.spans.spans, part.spans, strict=True)
        if state == PERHAPS and span.kind != "infra"
    ]
    return tuple(_evidence(span, "may or may not belong to it") for span in spans[:_NAMED])


def _evidence(span: Span, why: str) -> Evidence:
    return Evidence(span.trace_id, span.span_id, span.name, why, span.start_ns)
