"""Per-run inputs to verdicts: what is known of a run for every question, and what reports show with its verdicts."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache, cached_property, partial
from itertools import count, repeat
from typing import Any

from clawtrace.dialects.load import Dialect
from clawtrace.facts.facts import FactState, fact_states
from clawtrace.facts.runs.arrivals import Arrivals, arrivals
from clawtrace.model.query import Query
from clawtrace.model.run import ClosedBy
from clawtrace.store.api import Columns, QueryableStore, at_once
from clawtrace.support.figures import amount
from clawtrace.verdicts.asking.ask import Values
from clawtrace.verdicts.reading.known_totals import TOTALS

__all__ = ["RunInputs", "ShownFacts", "no_trace_hints", "read_runs"]

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
SELECT {", ".join(TOTALS.values())}
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


@dataclass(eq=False, repr=False)
class RunInputs:
    """Per-run inputs to verdicts; a run's place is its position in each of the lists."""

    ids: Sequence[str]
    place: Mapping[str, int]
    """The place of each run, by run id."""
    traced: Sequence[bool]
    """Whether the run has a trace."""
    answered: Sequence[bool]
    """Whether the run is over and has no trace, and its runner knows the final answer."""
    complete: Sequence[bool | None]
    because: Sequence[tuple[str, ...]]
    """Why it is not complete, one sentence a reason."""
    dialects: Sequence[tuple[Dialect, ...]]
    """The dialects of its spans."""
    no_trace_hints: Mapping[str, str]
    """Why a run may have no trace, by run id."""
    unmarked: str = ""
    """The secrets that redaction does not mark, in one sentence: verdicts that depend on marks mention it."""
    today: date = field(default_factory=date.today)
    """The local date of the verdicts: a known failure is known until a day."""

    @cached_property
    def untraced(self) -> list[int]:
        """The places of the runs without a trace."""
        return [place for place, traced in enumerate(self.traced) if not traced]

    @cached_property
    def unfinished(self) -> list[int]:
        """The places of the runs of which more spans may come, or got lost."""
        return [place for place, complete in enumerate(self.complete) if complete is not True]

    @cached_property
    def values(self) -> dict[str, Values]:
        """Distinct values that were read of the runs with a trace, by SQL (see `ask`)."""
        return {}

    @cached_property
    def _rows(self) -> dict[Hashable, array[int]]:
        return {}

    def rows_of(self, answer: Columns) -> array[int]:
        """Return the row of each run, by place, in an answer; -1 where it has none.

        A store answers most questions in one of few orders of the runs: for each order it is found out once.
        """
        key = answer.key("run_id")
        found = self._rows.get(key)
        if found is None:
            row = dict(zip(answer.column("run_id"), count()))
            found = self._rows[key] = array("q", map(row.get, self.ids, repeat(-1)))
        return found


class ShownFacts:
    """Return what reports show of each run next to its verdicts, by run id.

    Args:
        store: is asked; ``selected_runs`` is changed.
        run_ids: of which runs.
        dialects: by name.
    """

    def __init__(self, store: QueryableStore, run_ids: Sequence[str], dialects: Mapping[str, Dialect]) -> None:
        found: dict[str, Columns] = {}
        self.states: dict[str, FactState] = {}

        def read(sql: str, side: QueryableStore) -> None:
            side.select_runs(run_ids)
            found[sql] = side.ask_columns(Query(sql))

        def read_states(side: QueryableStore) -> None:
            side.select_runs(run_ids)
            self.states.update(fact_states(side))

        # The first takes as long as the others together.
        at_once(store.sides(), [*(partial(read, sql) for sql in (_SPANS, _RUNS, _TRACES, _TOTALS)), read_states])
        self.runs = _columns(found[_RUNS])
        """Rows of the runs, by column."""
        self.spans: dict[str, int] = {}
        self.dialects: dict[str, tuple[Dialect, ...]] = {}
        for run_id, name, spans_of in zip(*_columns(found[_SPANS]).values(), strict=True):
            self.spans[run_id] = self.spans.get(run_id, 0) + spans_of
            if name in dialects:
                self.dialects[run_id] = (*self.dialects.get(run_id, ()), dialects[name])
        self.traces = dict(zip(*_columns(found[_TRACES]).values(), strict=True))
        self._totals = found[_TOTALS]
        self._totals_rows = {run_id: row for row, run_id in enumerate(self._totals.column("run_id"))}

    def totals(self, run_ids: Iterable[str]) -> Iterable[Mapping[str, Any]]:
        """Return the runs' rows of ``run_totals``; their values are read when they are looked up."""
        rows = map(self._totals_rows.get, run_ids)
        return ({} if row is None else self._totals.row(row) for row in rows)


def read_runs(
    store: QueryableStore,
    run_ids: Sequence[str],
    dialects: Mapping[str, Dialect],
    *,
    stand_ins: Collection[str],
    unmarked: str,
    today: date,
) -> tuple[RunInputs, ShownFacts]:
    """Read the runs; ``selected_runs`` is changed. The arguments are those of `evaluate`."""
    shown = ShownFacts(store, run_ids, dialects)
    columns = shown.runs
    ids = columns["run_id"]
    traced = [bool(one) for one in columns["traced"]]
    if stand_ins:
        without = frozenset(stand_ins)
        traced = [has and run_id not in without for run_id, has in zip(ids, traced, strict=True)]
    sentences = cache(_sentences)
    inputs = RunInputs(
        ids=ids,
        place={run_id: place for place, run_id in enumerate(ids)},
        traced=traced,
        answered=[bool(one) for one in columns["answered"]],
        complete=[None if one is None else bool(one) for one in columns["complete"]],
        because=[sentences(text) for text in columns["incomplete_because"]],
        dialects=[shown.dialects.get(run_id, ()) for run_id in ids],
        no_trace_hints=no_trace_hints(store, [run_id for run_id, has in zip(ids, traced, strict=True) if not has]),
        unmarked=unmarked,
        today=today,
    )
    return inputs, shown


def _columns(answer: Columns) -> dict[str, list[Any]]:
    return {name: answer.column(name) for name in answer.columns}


def _sentences(incomplete_because: str | None) -> tuple[str, ...]:
    return tuple(reason["message"] for reason in json.loads(incomplete_because or "[]"))


NAME_NO_RUN = "name no run of this evaluation"
"""Words of the hint that spans without a run may belong to a run without a trace."""

_ENDS = """
SELECT s.run_id AS run_id, r.run_status AS run_status, r.agent_exit_code AS exit_code, r.closed_by AS closed_by
FROM selected_runs AS s JOIN runs AS r ON r.run_id = s.run_id
WHERE r.run_status IS NOT NULL
"""

_READ_FIRST = "read its standard error first. "
_LATER = (
    "If the agent already ran, its exporter sends later than the wait: `settle_ms` of the runner sets how long to wait "
    "without new spans, and `agent: started` means that there is nothing to wait for. "
)


def no_trace_hints(store: QueryableStore, run_ids: Sequence[str]) -> dict[str, str]:
    """Return why there may be no trace of each run, from the receiver's counters; ``selected_runs`` is changed."""
    came = arrivals(store, run_ids)
    if not came:
        return {}
    ends = {run_id: _end(*ended) for run_id, *ended in store.ask(Query(_ENDS)).rows}
    return {run_id: _no_trace_hint(came[run_id], ends.get(run_id, "")) for run_id in run_ids}


def _no_trace_hint(came: Arrivals, ended: str) -> str:
    """Return what came for the run, and what came for none; where nothing came, how its agent ended if not well."""
    if came.rejected or came.refused:
        counts = ((came.rejected, "rejected"), (came.refused, "refused"))
        items = " and ".join(f"{amount(count, 'item')} {word}" for count, word in counts if count)
        return f"Nothing of this run was accepted, {items}: {'; '.join(came.why)}."
    if came.accepted:
        return (
            f"{came.accepted} items arrived for this run, and none is a span: its exporter sends only logs or metrics."
        )
    if came.nameless_spans:
        counted = f"{amount(came.nameless_spans, 'span')} in {amount(came.nameless_traces, 'trace')}"
        return (
            f"{counted} arrived that {NAME_NO_RUN}: pass CLAWTRACE_RUN_ID on as the resource "
            "attribute clawtrace.run_id (OTEL_RESOURCE_ATTRIBUTES), or as the header x-clawtrace-run-id. An agent that "
            "already runs must continue the `traceparent` of each request (TRACEPARENT), or name the session "
            "(CLAWTRACE_SESSION_ID) as `session.id` or `gen_ai.conversation.id`."
        )
    if came.strays:
        listed = "; ".join(f"{reason} ({count} times)" if count > 1 else reason for reason, count in came.strays)
        return (
            f"Nothing arrived for this run, but requests that did not name a run were rejected while it ran: {listed}."
        )
    if ended.endswith(_READ_FIRST):
        return f"Nothing arrived at all. {ended}`clawtrace doctor` looks for other causes."
    return (
        f"Nothing arrived at all. {ended}Usual causes{' otherwise' if ended else ''}: no exporter is configured, it points "
        "elsewhere (`clawtrace env` prints what is set), or the agent ended without flushing it (`process.exit`, `os._exit`); "
        "`clawtrace doctor` looks for the first two. An agent that already runs, or whose exporter has an address of its own, needs a fixed port: "
        "`receiver: {http_port: 4318}` in clawtrace.yaml; a server continues the `traceparent` of each request."
    )


def _end(status: str, exit_code: int | None, closed_by: str | None) -> str:
    """Return how an agent ended that did not end well, or what was waited for in vain."""
    if status == "success":
        return _LATER if closed_by == ClosedBy.SETTLED else ""
    if status == "timed_out":
        return "The agent was stopped at its time limit. "
    code = "" if exit_code is None else f" (exit code {exit_code})"
    return f"The agent ended as `{status}`{code}: {_READ_FIRST}"
