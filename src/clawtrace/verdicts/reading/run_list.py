"""A line for each run: what `GET /clawtrace/v1/runs` lists, and the live page shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clawtrace.model.query import Query
from clawtrace.store.api import QueryableStore
from clawtrace.verdicts.reading.known_totals import TOTALS, bounded
from clawtrace.verdicts.reading.rows import by_run, rows_sql

__all__ = ["ListedRun", "RunList", "listed_runs"]

_TOTALS = tuple(
    column
    for name in ("llm_calls", "tool_calls", "input_tokens", "output_tokens", "cost_usd")
    for column in (name, *bounded(name))
)

_RUNS = f"""
SELECT r.run_id AS run_id, r.case_id AS case_id, r.model_id AS model_id, r.repetition AS repetition, r.closed_by AS closed_by,
       r.complete AS complete, r.run_status AS run_status, r.started_ns AS started_ns, r.incomplete_because AS incomplete_because,
       {", ".join(TOTALS[name] for name in _TOTALS)}
FROM selected_runs AS q JOIN runs AS r ON r.run_id = q.run_id LEFT JOIN run_totals AS t ON t.run_id = q.run_id
"""

_SPANS = "SELECT s.run_id, count(*) FROM spans AS s JOIN selected_runs AS q ON q.run_id = s.run_id GROUP BY s.run_id"
_AGENTS = rows_sql("agents", ("name",), "activation_no", "WHERE r.name IS NOT NULL AND r.parent_activation_no IS NULL")
_MODELS = rows_sql("llm_calls", ("model",), "call_no", "WHERE r.model IS NOT NULL")


@dataclass
class ListedRun:
    """One run. Unknown is null."""

    run_id: str
    case_id: str | None
    model_id: str | None
    """The model that it evaluates, where it was announced with one."""
    repetition: int | None
    closed_by: str | None
    """Why no more spans are expected; null while it is open."""
    complete: bool | None
    """Null while it is open, and without spans."""
    run_status: str | None
    started_ns: int | None
    """Nanoseconds since the Unix epoch."""
    incomplete_because: list[str]
    """The reasons, one sentence each."""
    spans: int
    agents: list[str]
    """Names of the agents that no other agent called, in order."""
    models: list[str]
    """Models that answered, in order."""
    totals: dict[str, Any]
    """Calls, tokens and cost: the number where it is known, and its bounds (`_low`, `_high`)."""
    verdicts: dict[str, int] | None = None
    """How many verdicts of each status the service gave last; null where it gave none."""


@dataclass
class RunList:
    """Runs, in the order of first sight."""

    runs: list[ListedRun]
    total: int
    """The total number of runs."""


def listed_runs(store: QueryableStore, run_ids: Sequence[str]) -> list[ListedRun]:
    """Return a line for each run, in the order of `run_ids`; facts must be current."""
    store.select_runs(run_ids)
    rows = {row["run_id"]: row for row in store.ask(Query(_RUNS)).dicts()}
    spans = dict(store.ask(Query(_SPANS)).rows)
    agents, models = (by_run(store, sql) for sql in (_AGENTS, _MODELS))
    return [
        _listed(rows[run_id], spans.get(run_id, 0), agents.get(run_id, []), models.get(run_id, []))
        for run_id in run_ids
        if run_id in rows
    ]


def _listed(row: dict[str, Any], spans: int, agents: list[dict[str, Any]], models: list[dict[str, Any]]) -> ListedRun:
    row["incomplete_because"] = [reason["message"] for reason in json.loads(row["incomplete_because"] or "[]")]
    totals = {name: row.pop(name) for name in _TOTALS}
    of_agents = list(dict.fromkeys(one["name"] for one in agents))
    of_models = list(dict.fromkeys(one["model"] for one in models))
    return ListedRun(**row, spans=spans, agents=of_agents, models=of_models, totals=totals)
