"""Which facts of a store's runs are current, and the transactions that replace the others.

Facts of a run are computed when it is first asked about and again, whole, when anything of it arrived since:
the order of arrival can never matter. `normaliser.py` computes them; several batches are computed at the same time, one
on each question side of the store, because Python's part of one can then run during DuckDB's part of the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import chain, islice
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.dialects.load import Dialect
from clawtrace.errors import StoreError
from clawtrace.facts.columns import columns, columns_of
from clawtrace.facts.normaliser import Normaliser, read_sql
from clawtrace.facts.runs.completeness import ClosingSigns, Completeness
from clawtrace.facts.runs.run_facts import PLACED, RunFacts, in_order, message_rows
from clawtrace.model.progress import Counted, Progress, unseen
from clawtrace.model.query import Query
from clawtrace.model.run import RunRecord
from clawtrace.store.api import FactSide, FactStore, QueryableStore, at_once
from clawtrace.support.memory import collector_paused, give_back

if TYPE_CHECKING:
    from clawtrace.facts.scopes.scoped_facts import ScopedFacts
    from clawtrace.facts.scopes.scopes import Scope
    from clawtrace.pricing import Pricing

__all__ = ["FactState", "Facts", "fact_states", "stand_ins"]

_BATCH_SPANS = 50_000
"""Spans whose facts are computed together at most: bounds memory, large enough for set-based work."""

_SHARED_SPANS = 5_000
"""A backlog of more is shared out among the question sides: less is not worth the planning of another batch."""

_ROWS_AT_ONCE = 50_000

_PUBLISHED = "SELECT 1 FROM fact_state WHERE run_id IN (SELECT run_id FROM fact_runs) LIMIT 1"
_PUBLISHED_IN_PART = f"""
SELECT 1 WHERE EXISTS ({_PUBLISHED}) OR EXISTS (FROM messages WHERE run_id IN (SELECT run_id FROM fact_runs))
"""
"""Messages are there alone where a process ended before it had written all facts of its runs."""

_STATE = """
SELECT n.run_no, n.run_id, coalesce(t.raw_rows, 0), coalesce(t.last_arrival_ns, 0), coalesce(r.written_ns, 0)
FROM wanted_runs AS w
JOIN run_numbers AS n ON n.run_id = w.run_id
LEFT JOIN (
    SELECT run_no, count(*) AS raw_rows, max(arrival_ns) AS last_arrival_ns
    FROM (SELECT run_no, arrival_ns FROM otel_traces UNION ALL SELECT run_no, arrival_ns FROM otel_logs)
    WHERE run_no IN (SELECT run_no FROM run_numbers JOIN wanted_runs USING (run_id))
    GROUP BY run_no
) AS t ON t.run_no = n.run_no
LEFT JOIN run_records AS r ON r.run_id = n.run_id
LEFT JOIN fact_state AS s ON s.run_id = n.run_id
WHERE s.run_id IS NULL
   OR s.raw_rows <> coalesce(t.raw_rows, 0)
   OR s.last_arrival_ns <> coalesce(t.last_arrival_ns, 0)
   OR s.record_ns <> coalesce(r.written_ns, 0)
   OR s.normaliser <> $normaliser
ORDER BY n.run_no
"""

_OF_LOGS = 'SELECT run_id FROM run_records WHERE record LIKE \'%"log": "%\''

_STATES_OF_SELECTED = """
SELECT f.run_id AS run_id, f.raw_rows AS raw_rows, f.last_arrival_ns AS last_arrival_ns, f.record_ns AS record_ns,
       f.normaliser AS normaliser, f.diagnostics AS diagnostics
FROM fact_state AS f JOIN selected_runs AS s ON s.run_id = f.run_id
"""

_COMPUTED = {
    "run_id": "text", "raw_rows": "bigint", "last_arrival_ns": "bigint", "record_ns": "bigint", "normaliser": "text",
    "diagnostics": "text",
}  # fmt: skip
"""Columns of ``fact_state``."""

_WANTED = """
SELECT n.run_no, n.run_id, coalesce(s.raw_rows, 0)
FROM wanted_runs AS w
JOIN run_numbers AS n ON n.run_id = w.run_id
LEFT JOIN fact_state AS s ON s.run_id = n.run_id
ORDER BY n.run_no
"""


class FactState(NamedTuple):
    """The state of one run's facts."""

    computed_from: tuple[int | str, ...]
    """Raw rows, last arrival, record and rules; the facts are out of date when it differs."""
    diagnostics: tuple[str, ...]
    """Sentences about the run's spans, such as that a parent was cut."""


def fact_states(store: QueryableStore) -> dict[str, FactState]:
    """Return the state of the facts of each selected run."""
    return {
        run_id: FactState(tuple(state), tuple(json.loads(diagnostics)))
        for run_id, *state, diagnostics in store.ask(Query(_STATES_OF_SELECTED)).rows
    }


def stand_ins(store: FactStore) -> set[str]:
    """Return the runs whose record names the log that their spans were made of: no trace of them arrived."""
    return {run_id for (run_id,) in store.script(_OF_LOGS)}


def _batches(rows: Sequence[tuple[Any, ...]], sides: int = 1) -> Iterator[list[tuple[Any, ...]]]:
    """Yield rows of (run number, run id, raw rows, …) together: at most `_BATCH_SPANS`, and where it pays a part for each side."""
    at_most = min(_BATCH_SPANS, max(_SHARED_SPANS, -(-sum(row[2] for row in rows) // sides)))
    batch: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        if batch and size + row[2] > at_most:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row[2]
    if batch:
        yield batch


def _numbers(batch: Sequence[tuple[Any, ...]]) -> dict[int, str]:
    """Return the ids of the runs of a batch by their numbers."""
    return {row[0]: row[1] for row in batch}


def _let_go(side: FactSide, spans: int) -> None:
    """Give back the memory that a large batch took."""
    if spans > _SHARED_SPANS:
        side.script(read_sql("let_go"))
        give_back()


@contextmanager
def _transaction(side: FactSide) -> Iterator[None]:
    """Commit what is done inside, or nothing of it."""
    side.script("BEGIN")
    try:
        yield
        side.script("COMMIT")
    except BaseException:
        with suppress(StoreError):  # a COMMIT that fails ends the transaction itself
            side.script("ROLLBACK")
        raise


def _unpublish(side: FactSide, published: str) -> None:
    """Take back what is there of the facts of a batch."""
    if side.script(published):
        side.script(read_sql("unpublish"))


class Facts:
    """Keeps the facts of a store's runs current.

    Args:
        store: where raw rows are and facts go.
        dialects: highest priority first.
        pricing: prices of the project; None leaves the genai-prices tables.
        parent_not_exported: the project's own globs of span names whose parent is never exported.
    """

    def __init__(
        self,
        store: FactStore,
        dialects: Sequence[Dialect],
        pricing: Pricing | None,
        parent_not_exported: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._normaliser = Normaliser(dialects, pricing, parent_not_exported)
        self._python = Lock()
        """Held for Python's part of a batch: a second thread in it gains nothing, while DuckDB's part of the next one waits."""
        self._within: dict[Scope, ScopedFacts] = {}
        self._within_runs: set[str] = set()
        """What the last `ensure` found of the scopes that it was given, and of which runs."""

    def ensure(self, run_ids: Sequence[str], progress: Progress = unseen, scopes: Iterable[Scope] = ()) -> None:
        """Compute the facts of those `run_ids` whose raw rows or record changed since they were computed.

        Args:
            run_ids: of which runs.
            progress: called when a part of them is done.
            scopes: what `scoped` will be called for next: of runs whose facts are computed now, it is found by the way.
        """
        with self._store.lock, collector_paused():
            self._within = {scope: self._scoped_facts(scope) for scope in scopes}
            self._within_runs = set()
            self._forget(self._store.take_retired())
            self._store.load("wanted_runs", {"run_id": ("text", list(run_ids))})
            stale = self._store.script(_STATE, {"normaliser": self._normaliser.digest})
            if stale:
                sides = self._store.sides()
                many = sum(row[2] for row in stale) > _SHARED_SPANS
                if many:
                    self._store.compress()
                # Three steps: DuckDB's part, Python's part, the writing.
                steps = Counted("computing what the spans say", 3 * sum(row[2] for row in stale), progress)
                is_long = any(row[2] > _BATCH_SPANS for row in stale)
                with self._store.returning_memory() if is_long else nullcontext():
                    at_once(sides, [partial(self._replace, batch, steps) for batch in _batches(stale, len(sides))])
                if many:
                    self._store.compress()

    def _forget(self, run_ids: Sequence[str]) -> None:
        """Take back the facts of runs that are no more."""
        if run_ids:
            self._store.load("fact_runs", {"run_id": ("text", list(run_ids))})
            self._store.script(f"BEGIN;\n{read_sql('unpublish')}\nCOMMIT")

    def scoped(self, scopes: Iterable[Scope], run_ids: Sequence[str]) -> dict[Scope, ScopedFacts]:
        """Return what of the runs belongs to each scope, computed from the raw rows where `ensure` has not just done it."""
        normaliser = self._normaliser
        with self._store.lock, collector_paused():
            within, runs = self._within, self._within_runs
            self._within, self._within_runs = {}, set()
            wanted = list(scopes)
            if not within.keys() >= set(wanted):
                within, runs = {}, set()
            found = {scope: within.get(scope) or self._scoped_facts(scope) for scope in wanted}
            for one in found.values():
                one.keep(run_ids)
            self._store.load("wanted_runs", {"run_id": ("text", [one for one in run_ids if one not in runs])})
            for batch in _batches(self._store.script(_WANTED)):
                facts = normaliser.facts(normaliser.rows(self._store, _numbers(batch)))
                completeness = self._completeness(self._store)
                for run in facts:
                    run.sum_up(completeness.state(run.run_id, run).unfinished)
                    for one in found.values():
                        one.add(run, normaliser.shells)
                _let_go(self._store, sum(row[2] for row in batch))
        return found

    def _scoped_facts(self, scope: Scope) -> ScopedFacts:
        from clawtrace.facts.scopes.scoped_facts import ScopedFacts

        return ScopedFacts(self._store, scope)

    def signs(self, run_id: str, record: RunRecord) -> ClosingSigns:
        """Return what the spans that a run has so far say of its end; nothing is kept of it."""
        normaliser = self._normaliser
        with self._store.lock, collector_paused():
            self._store.load("wanted_runs", {"run_id": ("text", [run_id])})
            rows = normaliser.rows(self._store, _numbers(self._store.script(_WANTED)))
            facts = normaliser.facts(rows)
            return self._completeness(self._store).signs(facts[0] if facts else None, record)

    def _completeness(self, side: FactSide) -> Completeness:
        """Return what is known of how the runs of the batch that a side holds were closed."""
        return Completeness(side, self._normaliser.dialects, self._normaliser.parent_not_exported)

    def _replace(self, batch: Sequence[tuple[Any, ...]], steps: Counted, side: FactSide) -> None:
        """Compute the facts of a batch and write them in the place of older ones."""
        spans = sum(row[2] for row in batch)
        rows = self._normaliser.rows(side, _numbers(batch))
        completeness = self._completeness(side)
        steps.more(spans)
        with self._python:
            facts = self._normaliser.facts(rows)
            found = self._relations(batch, facts, completeness)
        messages = chain.from_iterable([message_rows(run.run_id, run.spans) for run in facts])
        del facts
        steps.more(spans)
        is_large = spans > _SHARED_SPANS
        if is_large:
            # DuckDB keeps what a transaction is given until it ends: of millions of messages, as much as all else takes.
            with _transaction(side):
                _unpublish(side, _PUBLISHED_IN_PART)
            give_back()
            self._insert_messages(messages, side)
        if spans > _BATCH_SPANS:  # one long run
            self._store.compress()
            give_back()
        with _transaction(side):
            if not is_large:
                _unpublish(side, _PUBLISHED)
            side.load("fact_placed", found.pop("fact_placed"))
            side.script(read_sql("publish"))
            for relation in list(found):
                side.insert(relation, found.pop(relation))
            self._insert_messages(messages, side)
        _let_go(side, spans)
        steps.more(spans)

    def _relations(
        self, batch: Sequence[tuple[Any, ...]], facts: Sequence[RunFacts], completeness: Completeness
    ) -> dict[str, dict[str, tuple[str, Sequence[Any]]]]:
        """Return the columns of what is written: ``fact_placed``, ``fact_state``, every relation but `spans` and `messages`."""
        placed: dict[str, tuple[str, list[Any]]] = {name: (kind, []) for name, kind in PLACED.items()}
        found: dict[str, list[tuple[Any, ...]]] = {}
        of_runs = {run.run_id: run for run in facts}
        states = {run_id: completeness.state(run_id, of_runs.get(run_id)) for _, run_id, *_ in batch}
        for run in facts:
            run.sum_up(states[run.run_id].unfinished)
            for (_, values), of_spans in zip(placed.values(), run.placed(), strict=True):
                values += of_spans
            for relation, of_run in run.rows(self._normaliser.shells).items():
                found.setdefault(relation, []).extend(of_run)
        found["runs"] = [
            in_order("runs", completeness.row(run_id, of_runs.get(run_id), state)) for run_id, state in states.items()
        ]
        computed = [
            (*row[1:5], self._normaliser.digest, json.dumps(completeness.diagnostics(row[1], of_runs.get(row[1]))))
            for row in batch
        ]
        for within in self._within.values():
            for run in facts:
                within.add(run, self._normaliser.shells)
        self._within_runs.update(row[1] for row in batch)
        return {
            "fact_placed": dict(placed),
            **{relation: columns_of(relation, of_relation) for relation, of_relation in found.items()},
            "fact_state": columns(_COMPUTED, computed),
        }

    def _insert_messages(self, rows: Iterator[tuple[Any, ...]], side: FactSide) -> None:
        """Write the relation `messages`, a part at a time: a conversation that is sent again with each call has millions of rows."""
        while True:
            with self._python:
                some = columns_of("messages", list(islice(rows, _ROWS_AT_ONCE)))
            if not some["run_id"][1]:
                return
            side.insert("messages", some)
