"""Assertions into results: what weighs on each run, its verdicts, and what the reports show beside them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cache, partial
from itertools import repeat
from types import MappingProxyType
from typing import Any

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.world import World
from clawtrace.dialects import Dialect
from clawtrace.facts.facts import facts_states
from clawtrace.model.progress import Progress, unseen
from clawtrace.model.query import Query
from clawtrace.model.relations import RELATIONS
from clawtrace.model.verdict import RunResult, Standing, Status, UnreadVerdicts, run_status_of
from clawtrace.store.api import Columns, QueryableStore
from clawtrace.store.at_once import at_once
from clawtrace.support.collector import collector_paused
from clawtrace.verdicts.asking.ask import Ask, ask
from clawtrace.verdicts.asking.combined import own_verdicts, parts_of
from clawtrace.verdicts.asking.probes import Probed
from clawtrace.verdicts.judging.coverage import no_trace_hints
from clawtrace.verdicts.judging.judge import ScopedOf, judge
from clawtrace.verdicts.judging.judgement import Judgement, RunFacts, Verdicts

__all__ = ["evaluate"]

_RUNS = """
SELECT s.run_id AS run_id, r.case_id AS case_id, r.model_id AS model_id, r.repetition AS repetition,
       r.closed_by AS closed_by, r.complete AS complete, r.incomplete_because AS incomplete_because,
       r.run_status AS run_status, r.started_ns AS started_ns, r.ended_ns AS ended_ns, t.run_id IS NOT NULL AS traced,
       t.run_id IS NULL AND r.closed_by IS NOT NULL AND r.final_output IS NOT NULL AS answered
FROM selected_runs AS s
LEFT JOIN runs AS r ON r.run_id = s.run_id
LEFT JOIN run_totals AS t ON t.run_id = s.run_id
"""

_TOTALS = f"""
SELECT {", ".join(f"t.{name} AS {name}" for name in RELATIONS["run_totals"].column_names)}
FROM run_totals AS t JOIN selected_runs AS s ON s.run_id = t.run_id
"""

_SPANS = """
SELECT p.run_id AS run_id, p.dialect AS dialect, count(*) AS n
FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id
GROUP BY p.run_id, p.dialect
"""

# Parents are of the same trace, so each trace has a span without a received ancestor: a hundredth of all spans is read.
_TRACES = """
SELECT p.run_id AS run_id, count(DISTINCT p.trace_id) AS n
FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id
WHERE p.depth = 0
GROUP BY p.run_id
"""

_DIAGNOSTICS = """
SELECT f.run_id AS run_id, f.diagnostics AS diagnostics
FROM fact_state AS f JOIN selected_runs AS s ON s.run_id = f.run_id
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
    asked: Mapping[str, Sequence[int]] | None = None,
    asker: Ask = ask,
    progress: Progress = unseen,
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
        asked: which of `assertions` each run is asked, by place, in the order of its verdicts (`combine`); none of them
            may have a scope then. None asks all.
        asker: answers the questions: from the store, unless verdicts are rerun.
        progress: called when a question is answered.

    Returns:
        One result a run, in the order of `run_ids`; its verdicts in the order of `assertions`.
    """
    if not run_ids:
        return []
    with collector_paused():
        columns, beside = _read(store, run_ids, dialects)
        runs = _run_facts(store, columns, beside, frozenset(stand_ins), unmarked, today or date.today())
        parts = [runs] * len(assertions) if asked is None else parts_of(runs, asked, len(assertions))
        judgements = judge(
            store, assertions, runs, parts, probed, worlds, scoped=scoped, of_passes=evidence_of_passes, asker=asker,
            progress=progress,
        )  # fmt: skip
        told: Sequence[tuple[UnreadVerdicts, Status | None]]
        if asked is None:
            told = _verdicts(judgements, len(runs.ids))
        else:
            told = [own_verdicts(judgements, parts, run_id, asked[run_id]) for run_id in runs.ids]
        results = dict(zip(runs.ids, _results(runs, columns, beside, told), strict=True))
        return [results[run_id] for run_id in run_ids]


def _columns(answer: Columns) -> dict[str, list[Any]]:
    return {name: answer.column(name) for name in answer.columns}


def _read(
    store: QueryableStore, run_ids: Sequence[str], dialects: Mapping[str, Dialect]
) -> tuple[dict[str, list[Any]], _Beside]:
    """Read the runs, and what is known of them beside their verdicts."""
    found: dict[str, Columns] = {}
    states: list[dict[str, tuple[int | str, ...]]] = []

    def read(sql: str, side: QueryableStore) -> None:
        side.select_runs(run_ids)
        found[sql] = side.ask_columns(Query(sql))

    def read_states(side: QueryableStore) -> None:
        side.select_runs(run_ids)
        states.append(facts_states(side))

    # The first takes as long as the others together.
    asked = (_SPANS, _RUNS, _TRACES, _TOTALS, _DIAGNOSTICS)
    at_once(store.sides(), [*(partial(read, sql) for sql in asked), read_states])
    spans, runs, traces, totals, diagnostics = (found[sql] for sql in asked)
    return _columns(runs), _Beside(spans, traces, totals, diagnostics, states[0], dialects)


class _Beside:
    """What is known of each run beside its verdicts, by run id."""

    def __init__(
        self,
        spans: Columns,
        traces: Columns,
        totals: Columns,
        diagnostics: Columns,
        facts_states: Mapping[str, tuple[int | str, ...]],
        dialects: Mapping[str, Dialect],
    ) -> None:
        self.spans: dict[str, int] = {}
        self.dialects: dict[str, tuple[Dialect, ...]] = {}
        for run_id, name, count in zip(*_columns(spans).values(), strict=True):
            self.spans[run_id] = self.spans.get(run_id, 0) + count
            if name in dialects:
                self.dialects[run_id] = (*self.dialects.get(run_id, ()), dialects[name])
        self.traces = dict(zip(*_columns(traces).values(), strict=True))
        told = zip(*_columns(diagnostics).values(), strict=True)
        self.diagnostics = {run_id: tuple(json.loads(text)) for run_id, text in told}
        self.facts_states = facts_states
        self._totals = totals
        self._totals_rows = {run_id: row for row, run_id in enumerate(totals.column("run_id"))}

    def totals(self, run_ids: Iterable[str]) -> Iterable[Mapping[str, Any]]:
        """Return the runs' rows of ``run_totals``; their values are read when they are looked up."""
        rows = map(self._totals_rows.get, run_ids)
        return ({} if row is None else self._totals.row(row) for row in rows)


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
        answered=[bool(one) for one in columns["answered"]],
        complete=[None if one is None else bool(one) for one in columns["complete"]],
        because=[sentences(text) for text in columns["incomplete_because"]],
        dialects=[beside.dialects.get(run_id, ()) for run_id in ids],
        no_trace_hints=no_trace_hints(store, [run_id for run_id, has in zip(ids, traced, strict=True) if not has]),
        unmarked=unmarked,
        today=today,
    )


def _sentences(incomplete_because: str | None) -> tuple[str, ...]:
    return tuple(reason["message"] for reason in json.loads(incomplete_because or "[]"))


def _verdicts(judgements: Sequence[Judgement], runs: int) -> Sequence[tuple[UnreadVerdicts, Status | None]]:
    """Return of each run, by place, its verdicts and its status; equal statuses are computed once."""
    if not judgements:
        return [(Verdicts((), place, ()), None) for place in range(runs)]

    @cache
    def weigh(codes: tuple[int, ...]) -> tuple[tuple[Standing, ...], Status | None]:
        standings = tuple(one.standing(code) for one, code in zip(judgements, codes, strict=True))
        return standings, run_status_of(standings)

    worth = map(weigh, zip(*(one.codes for one in judgements), strict=True))
    return [(Verdicts(judgements, place, standings), status) for place, (standings, status) in enumerate(worth)]


def _results(
    runs: RunFacts,
    columns: Mapping[str, list[Any]],
    beside: _Beside,
    told: Sequence[tuple[UnreadVerdicts, Status | None]],
) -> Iterable[RunResult]:
    """Return the results by place: made from columns, in half the time that one after the other takes."""
    ids = runs.ids
    times = zip(columns["started_ns"], columns["ended_ns"], strict=True)
    given: dict[str, Iterable[Any]] = {
        "run_id": ids,
        "case_id": (case_id or run_id for case_id, run_id in zip(columns["case_id"], ids, strict=True)),
        "model_id": columns["model_id"],
        "repetition": (repetition or 1 for repetition in columns["repetition"]),
        "status": (status for _, status in told),
        "verdicts": (verdicts for verdicts, _ in told),
        "run_status": columns["run_status"],
        "has_trace": runs.traced,
        "complete": runs.complete,
        "incomplete_because": runs.because,
        "closed_by": columns["closed_by"],
        "spans": map(beside.spans.get, ids, repeat(0)),
        "traces": map(beside.traces.get, ids, repeat(0)),
        "duration_ms": (None if None in (began, ended) else (ended - began) / 1e6 for began, ended in times),
        "diagnostics": map(beside.diagnostics.get, ids, repeat(())),
        "totals": beside.totals(ids),
        "facts_state": map(beside.facts_states.get, ids, repeat(())),
    }
    left = {name: repeat(default) for name, default in RunResult._field_defaults.items()}  # what only a campaign knows
    given = left | given
    return map(RunResult, *(given[name] for name in RunResult._fields))
