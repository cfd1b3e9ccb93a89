"""Assertions into results: what weighs on each run, its verdicts, and what the reports show beside them."""

from __future__ import annotations

import gc
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import repeat
from types import MappingProxyType
from typing import Any

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.world import World
from clawtrace.dialects import Dialect
from clawtrace.engine.coverage import no_trace_hints
from clawtrace.engine.judge import ScopedOf, judge
from clawtrace.engine.judgement import Judgement, RunFacts, Verdicts
from clawtrace.engine.probes import Probed
from clawtrace.model.query import Query
from clawtrace.model.verdict import RunResult, Standing, Status, run_status_of
from clawtrace.store.api import Columns, QueryableStore

__all__ = ["evaluate"]

_RUNS = """
SELECT s.run_id, r.case_id, r.model_id, r.repetition, r.closed_by, r.complete, r.incomplete_because, r.run_status,
       r.started_ns, r.ended_ns, t.run_id IS NOT NULL AS traced
FROM selected_runs AS s
LEFT JOIN runs AS r ON r.run_id = s.run_id
LEFT JOIN run_totals AS t ON t.run_id = s.run_id
"""

_TOTALS = "SELECT t.* FROM run_totals AS t JOIN selected_runs AS s ON s.run_id = t.run_id"

_SPANS = """
SELECT p.run_id, p.dialect, count(*) AS n
FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id
GROUP BY p.run_id, p.dialect
"""

# Parents are of the same trace, so each trace has a span without a received ancestor: a hundredth of all spans is read.
_TRACES = """
SELECT p.run_id, count(DISTINCT p.trace_id) AS n
FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id
WHERE p.depth = 0
GROUP BY p.run_id
"""

_DIAGNOSTICS = """
SELECT f.run_id, f.diagnostics FROM fact_state AS f JOIN selected_runs AS s ON s.run_id = f.run_id
WHERE f.diagnostics <> '[]'
"""


def evaluate(
    store: QueryableStore,
    assertions: Sequence[Assertion],
    run_ids: Sequence[str],
    dialects: Mapping[str, Dialect],
    *,
    probed: Mapping[int, Probed] = MappingProxyType({}),
    worlds: Mapping[str, World] = MappingProxyType({}),
    scoped: ScopedOf | None = None,
    stand_ins: Collection[str] = (),
    evidence_of_passes: bool = True,
    unmarked: str = "",
    today: date | None = None,
) -> list[RunResult]:
    """Ask every assertion of every run; facts must be current.

    Args:
        store: holds the facts.
        assertions: what to ask.
        run_ids: of which runs.
        dialects: by name, for hints on what would record an unknown fact.
        probed: what `ask_probes` found for the probes among `assertions`, by place.
        worlds: what is known of runs beside their spans, by run id.
        scoped: finds what belongs to an agent or a turn (`Facts.scoped`); needed where an assertion is narrowed down.
        stand_ins: runs whose spans are a log's, which answer only who asks for that log: no trace here.
        evidence_of_passes: whether verdicts that passed carry their spans too; where nobody reads them, half of the
            time is saved.
        unmarked: what redaction is set not to mark, in one sentence; empty when it marks everything that it knows.
        today: the local date, by which known failures end; None takes the clock's.

    Returns:
        One result a run, in the order of `run_ids`; its verdicts in the order of `assertions`.
    """
    if not run_ids:
        return []
    collects = gc.isenabled()
    gc.disable()  # it would look at millions of values that stay, again and again: a third of the time
    try:
        store.select_runs(run_ids)
        columns = _columns(store.ask_columns(Query(_RUNS)))
        beside = _Beside(store, dialects)
        runs = _run_facts(store, columns, beside, frozenset(stand_ins), unmarked, today or date.today())
        judgements = judge(store, assertions, runs, probed, worlds, scoped=scoped, of_passes=evidence_of_passes)
        results = dict(zip(runs.ids, _results(runs, columns, beside, judgements), strict=True))
        return [results[run_id] for run_id in run_ids]
    finally:
        if collects:
            gc.enable()


def _columns(answer: Columns) -> dict[str, list[Any]]:
    return {name: answer.column(name) for name in answer.columns}


class _Beside:
    """What is known of each run beside its verdicts, by run id."""

    def __init__(self, store: QueryableStore, dialects: Mapping[str, Dialect]) -> None:
        self.spans: dict[str, int] = {}
        self.dialects: dict[str, tuple[Dialect, ...]] = {}
        for run_id, name, count in zip(*_columns(store.ask_columns(Query(_SPANS))).values(), strict=True):
            self.spans[run_id] = self.spans.get(run_id, 0) + count
            if name in dialects:
                self.dialects[run_id] = (*self.dialects.get(run_id, ()), dialects[name])
        self.traces = dict(zip(*_columns(store.ask_columns(Query(_TRACES))).values(), strict=True))
        self.diagnostics = {run_id: tuple(json.loads(text)) for run_id, text in store.ask(Query(_DIAGNOSTICS)).rows}
        self._totals = store.ask_columns(Query(_TOTALS))
        self._totals_rows = {run_id: row for row, run_id in enumerate(self._totals.column("run_id"))}

    def totals(self, run_id: str) -> Mapping[str, Any]:
        """Return the run's row of ``run_totals``; its values are read when they are looked up."""
        row = self._totals_rows.get(run_id)
        return {} if row is None else self._totals.row(row)


def _run_facts(
    store: QueryableStore,
    columns: Mapping[str, list[Any]],
    beside: _Beside,
    stand_ins: frozenset[str],
    unmarked: str,
    today: date,
) -> RunFacts:
    """Return what weighs on the verdicts; ``selected_runs`` is changed where runs have no trace."""
    ids = columns["run_id"]
    traced = [bool(one) for one in columns["traced"]]
    if stand_ins:
        traced = [has and run_id not in stand_ins for run_id, has in zip(ids, traced, strict=True)]
    sentences = cache(_sentences)
    return RunFacts(
        ids=ids,
        place={run_id: place for place, run_id in enumerate(ids)},
        traced=traced,
        complete=[None if one is None else bool(one) for one in columns["complete"]],
        because=[sentences(text) for text in columns["incomplete_because"]],
        dialects=[beside.dialects.get(run_id, ()) for run_id in ids],
        no_trace_hints=no_trace_hints(store, [run_id for run_id, has in zip(ids, traced, strict=True) if not has]),
        unmarked=unmarked,
        today=today,
    )


def _sentences(incomplete_because: str | None) -> tuple[str, ...]:
    return tuple(reason["message"] for reason in json.loads(incomplete_because or "[]"))


def _worth(judgements: Sequence[Judgement], runs: int) -> list[tuple[tuple[Standing, ...], Status | None]]:
    """Return of each run, by place, the standings of its verdicts and its status; equal ones are computed once."""
    if not judgements:
        return [((), None)] * runs

    @cache
    def weigh(codes: tuple[int, ...]) -> tuple[tuple[Standing, ...], Status | None]:
        standings = tuple(one.standing(code) for one, code in zip(judgements, codes, strict=True))
        return standings, run_status_of(standings)

    return list(map(weigh, zip(*(one.codes for one in judgements), strict=True)))


def _results(
    runs: RunFacts, columns: Mapping[str, list[Any]], beside: _Beside, judgements: Sequence[Judgement]
) -> Iterable[RunResult]:
    """Return the results by place: made from columns, in half the time that one after the other takes."""
    ids, worth = runs.ids, _worth(judgements, len(runs.ids))
    times = zip(columns["started_ns"], columns["ended_ns"], strict=True)
    given: dict[str, Iterable[Any]] = {
        "run_id": ids,
        "case_id": (case_id or run_id for case_id, run_id in zip(columns["case_id"], ids, strict=True)),
        "model_id": columns["model_id"],
        "repetition": (repetition or 1 for repetition in columns["repetition"]),
        "status": (status for _, status in worth),
        "verdicts": (Verdicts(judgements, place, standings) for place, (standings, _) in enumerate(worth)),
        "run_status": columns["run_status"],
        "has_trace": runs.traced,
        "complete": runs.complete,
        "incomplete_because": runs.because,
        "closed_by": columns["closed_by"],
        "spans": (beside.spans.get(run_id, 0) for run_id in ids),
        "traces": (beside.traces.get(run_id, 0) for run_id in ids),
        "duration_ms": (None if None in (began, ended) else (ended - began) / 1e6 for began, ended in times),
        "diagnostics": (beside.diagnostics.get(run_id, ()) for run_id in ids),
        "totals": map(beside.totals, ids),
    }
    left = {name: repeat(default) for name, default in RunResult._field_defaults.items()}  # what only a campaign knows
    given = left | given
    return map(RunResult, *(given[name] for name in RunResult._fields))
