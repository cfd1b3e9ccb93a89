"""Assertions into verdicts: ask, weigh completeness, explain (spec: assertions.md §2 and §9)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.dialects import Dialect
from clawtrace.engine.ask import Asked, ask
from clawtrace.engine.coverage import hint_for, no_trace_hint
from clawtrace.errors import ClawtraceError
from clawtrace.model.query import Query
from clawtrace.model.verdict import RunResult, Status, Verdict, run_status_of
from clawtrace.store.api import QueryableStore

__all__ = ["evaluate"]

_RUNS = """
SELECT s.run_id, r.case_id, r.model_id, r.repetition, r.closed_by, r.complete, r.incomplete_because, r.run_status,
       r.started_ns, r.ended_ns, t.run_id AS traced, c.n AS spans, c.traces
FROM selected_runs AS s
LEFT JOIN runs AS r ON r.run_id = s.run_id
LEFT JOIN run_totals AS t ON t.run_id = s.run_id
LEFT JOIN (
    SELECT p.run_id AS run_id, count(*) AS n, count(DISTINCT p.trace_id) AS traces
    FROM spans AS p JOIN selected_runs AS x ON x.run_id = p.run_id
    GROUP BY p.run_id
) AS c ON c.run_id = s.run_id
"""

_TOTALS = "SELECT t.* FROM run_totals AS t JOIN selected_runs AS s ON s.run_id = t.run_id"

_DIALECTS = """
SELECT DISTINCT p.run_id, p.dialect FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id
"""

_DIAGNOSTICS = """
SELECT f.run_id, f.diagnostics FROM fact_state AS f JOIN selected_runs AS s ON s.run_id = f.run_id
WHERE f.diagnostics <> '[]'
"""


@dataclass(frozen=True, slots=True)
class _Run:
    """What weighs on every verdict of one run."""

    run_id: str
    has_trace: bool
    complete: bool | None
    because: tuple[str, ...]
    dialects: tuple[Dialect, ...]


def evaluate(
    store: QueryableStore,
    assertions: Sequence[Assertion],
    run_ids: Sequence[str],
    dialects: Mapping[str, Dialect],
    *,
    evidence_of_passes: bool = True,
) -> list[RunResult]:
    """Ask every assertion of every run; facts must be current.

    Args:
        store: holds the facts.
        assertions: what to ask.
        run_ids: of which runs.
        dialects: by name, for hints on what would record an unknown fact.
        evidence_of_passes: whether verdicts that passed carry their spans too; where nobody reads them, half of the
            time is saved.

    Returns:
        One result a run, in the order of `run_ids`; its verdicts in the order of `assertions`.
    """
    if not run_ids:
        return []
    store.select_runs(run_ids)
    rows = {row["run_id"]: row for row in store.ask(Query(_RUNS)).dicts()}
    totals = {row["run_id"]: row for row in store.ask(Query(_TOTALS)).dicts()}
    diagnostics = {run_id: json.loads(text) for run_id, text in store.ask(Query(_DIAGNOSTICS)).rows}
    present: dict[str, list[Dialect]] = {}
    for run_id, name in store.ask(Query(_DIALECTS)).rows:
        if name in dialects:
            present.setdefault(run_id, []).append(dialects[name])
    runs = {run_id: _run(rows[run_id], tuple(present.get(run_id, ()))) for run_id in run_ids}
    verdicts: dict[str, list[Verdict]] = {run_id: [] for run_id in run_ids}
    for assertion in assertions:
        for verdict in _judge(store, assertion, runs, evidence_of_passes):
            verdicts[verdict.run_id].append(verdict)
    return [
        _result(runs[run_id], rows[run_id], verdicts[run_id], totals.get(run_id, {}), diagnostics.get(run_id, []))
        for run_id in run_ids
    ]


def _run(row: Mapping[str, Any], dialects: tuple[Dialect, ...]) -> _Run:
    because = tuple(reason["message"] for reason in json.loads(row["incomplete_because"] or "[]"))
    complete = None if row["complete"] is None else bool(row["complete"])
    return _Run(row["run_id"], row["traced"] is not None, complete, because, dialects)


def _result(
    run: _Run, row: Mapping[str, Any], verdicts: list[Verdict], totals: Mapping[str, Any], said: Sequence[str]
) -> RunResult:
    known = row["started_ns"] is not None and row["ended_ns"] is not None
    return RunResult(
        run_id=run.run_id,
        case_id=row["case_id"] or run.run_id,
        model_id=row["model_id"],
        repetition=row["repetition"] or 1,
        status=run_status_of(verdicts),
        verdicts=tuple(verdicts),
        run_status=row["run_status"],
        has_trace=run.has_trace,
        complete=run.complete,
        incomplete_because=run.because,
        closed_by=row["closed_by"],
        spans=row["spans"] or 0,
        traces=row["traces"] or 0,
        duration_ms=(row["ended_ns"] - row["started_ns"]) / 1e6 if known else None,
        diagnostics=tuple(said),
        totals=dict(totals),
    )


def _judge(
    store: QueryableStore, assertion: Assertion, runs: Mapping[str, _Run], evidence_of_passes: bool
) -> list[Verdict]:
    """Return one verdict a run: skips where there is no trace, errors where the query could not run."""
    traced = [run.run_id for run in runs.values() if run.has_trace]
    verdicts = [_without_trace(store, assertion, run) for run in runs.values() if not run.has_trace]
    if not traced:
        return verdicts
    began = time.perf_counter()
    try:
        asked = ask(store, assertion, traced)
        outcomes = {outcome.run_id: outcome for outcome in asked.outcomes}
        found = [_settled(assertion, runs[run_id], outcomes.get(run_id), asked) for run_id in traced]
        shown = [v.run_id for v in found if evidence_of_passes or v.status is not Status.PASS]
        evidence = asked.evidence(shown)
    except ClawtraceError as error:
        return verdicts + [_broken(assertion, run_id, str(error)) for run_id in traced]
    spent = (time.perf_counter() - began) * 1000 / len(traced)
    return verdicts + [replace(v, evidence=tuple(evidence.get(v.run_id, ())), duration_ms=spent) for v in found]


def _settled(assertion: Assertion, run: _Run, outcome: Outcome | None, asked: Asked) -> Verdict:
    if outcome is None:
        # A query that forgets a run must never look like a pass.
        forgotten = "its query returned no row for a run that has a trace."
        return _broken(assertion, run.run_id, asked.broken.get(run.run_id, forgotten))
    return _verdict(assertion, run, outcome, asked)


def _base(assertion: Assertion, run_id: str, status: Status, message: str, **more: Any) -> Verdict:
    return Verdict(
        run_id=run_id,
        id=assertion.id or assertion.type_name,
        type=assertion.type_name,
        status=status,
        final=more.pop("final", False),
        message=message,
        severity=assertion.severity,
        expected=assertion.expectation(),
        description=assertion.description,
        **more,
    )


def _broken(assertion: Assertion, run_id: str, why: str) -> Verdict:
    return _base(assertion, run_id, Status.ERROR, f"the assertion could not be evaluated: {why}")


def _on_missing(assertion: Assertion, default: Status) -> Status:
    return Status(assertion.on_missing) if assertion.on_missing is not None else default


def _without_trace(store: QueryableStore, assertion: Assertion, run: _Run) -> Verdict:
    status = _on_missing(assertion, Status.SKIP)
    message = "there is no trace of this run, so nothing can be said."
    if status is not Status.SKIP:
        message = f"there is no trace of this run; `on_missing: {status}` decides."
    hint = " ".join(filter(None, (no_trace_hint(store, run.run_id), assertion.no_trace_hint())))
    return _base(assertion, run.run_id, status, message, hint=hint, missing="trace")


def _verdict(assertion: Assertion, run: _Run, outcome: Outcome, asked: Asked) -> Verdict:
    """Weigh an outcome: unknown facts and unfinished traces make it inconclusive, unless nothing could change it."""
    message = assertion.explain(outcome)
    hint, missing_data = "", False
    unfinished = run.complete is not True
    if outcome.holds is None:
        status = Status.INCONCLUSIVE
        if outcome.missing in assertion.warns_when_missing and not unfinished:
            status, missing_data = Status.WARN, True
        if outcome.missing:
            chosen = _on_missing(assertion, status)
            if chosen is not status:
                status, missing_data = chosen, False
                message += f" `on_missing: {status}` decides."
            hint = hint_for(outcome.missing, run.dialects)
    elif unfinished and not outcome.final:
        status = Status.INCONCLUSIVE
        why = " ".join(run.because) if run.because else "the run is not closed yet, more spans may come."
        message = f"{message} This could still change: {why}"
    else:
        status = Status.PASS if outcome.holds else Status.FAIL
    return _base(
        assertion, run.run_id, status, message,
        final=outcome.holds is not None and (outcome.final or not unfinished),
        actual=assertion.actual(outcome), sql=asked.query.sql, params=asked.params(),
        hint=hint, missing=outcome.missing, missing_data=missing_data,
    )  # fmt: skip
