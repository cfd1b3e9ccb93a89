"""`span_query`: a structural selection over the span tree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.counting.bounds import Bounds, Counted, check_bounds, decide_sql, plural, words
from clawtrace.assertions.refused import refused
from clawtrace.assertions.spans.span_condition import SpanCondition, parts_of
from clawtrace.assertions.spans.span_sql import Compiled, compile_conditions, stays
from clawtrace.model.query import Query, Resolve

__all__ = ["SpanQuery"]

# A run's total that is NULL where its instrumentation cannot record such spans, and the words that ask for them.
_RECORDED = {
    "tool_calls": ("tool", ("tool_name", "tool_call_id")),
    "agents": ("agent", ("agent_name", "agent_id")),
    "llm_calls": ("llm", ("request_model", "response_model")),
    "errors": ("", ("error", "error_type")),
}


class SpanQuery(Assertion):
    """The number of selected spans is right, and every one of them satisfies `where`.

    Which span ran under which, alongside which and after which is what other types do not ask. `select` chooses spans;
    `count` says how many are right (by default at least one); `where` is what each of them must satisfy. A condition
    is a mapping, all of whose entries must be met: columns of `spans` (names, `glob:`, `re:`, lists; numbers,
    `">=3"`, of times `"<2s"`; `any`, or null for none), `attributes` as they were sent, spans around it (`child`,
    `descendant`, `parent`, `ancestor`, `sibling`, `before`, `after`, `overlaps`), and `not`, `and`, `or`. A column
    that was not recorded leaves a span undecided, and the answer too where it depends on that span. With nothing
    selected `where` says nothing, so that it fails unless `count: {min: 0}` allows it. Spans are counted, not calls:
    `counted_as: call` leaves out the others that record the same call.

    Example:
        - type: span_query
          select: {kind: tool, tool_name: "re:^search", ancestor: {kind: agent, agent_name: researcher}}
          where: {duration_ns: "<30s", not: {descendant: {error: any}}}
          count: {min: 1, max: 5}
    """

    growth = "exact"
    main_field = "select"
    requires = ("spans.kind", "spans.tree_enter", "spans.tree_leave")

    select: SpanCondition
    """Which spans are meant; `{}` means all."""
    where: SpanCondition | None = None
    """What every selected span must satisfy."""
    count: Counted = Bounds(min=1)
    """How many spans are right: a number, or `min`, `max` or both."""

    @model_validator(mode="after")
    def _check(self) -> SpanQuery:
        if self.where is not None and not self.where.model_fields_set:
            raise refused("an empty condition matches every span: state what each selected span must satisfy", "where")
        check_bounds(self.count.min, self.count.max, alone=self.where is None, field="count")
        return self

    @property
    def _conditions(self) -> tuple[Any, ...]:
        return (self.select,) if self.where is None else (self.select, self.where)

    @cached_property
    def _compiled(self) -> tuple[Compiled, str]:
        return compile_conditions(self._conditions)

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide each text once per distinct value."""
        return tuple(self._compiled[0].resolve)

    def query(self) -> Query:
        """Count the spans that are selected, those that may be, and those among them that do not satisfy `where`."""
        compiled, table = self._compiled
        where = self.where is not None
        decided = self._decided(where)
        final = self._final(where)
        return Query(
            f"""
WITH {", ".join(compiled.tables)}
SELECT g.run_id AS run_id, g.low AS low, g.high AS high, g.wrong AS wrong, g.doubtful AS doubtful,
       CASE WHEN {final} THEN {decided} WHEN g.blind IS NOT NULL THEN NULL ELSE {decided} END AS holds,
       CASE WHEN {final} THEN TRUE ELSE FALSE END AS final,
       CASE WHEN g.blind IS NOT NULL AND NOT ({final}) THEN g.blind ELSE g.unknown END AS missing
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.blind) AS blind, max(f.unknown) AS unknown,
         sum(f.low) AS low, sum(f.high) AS high, sum(f.wrong) AS wrong, sum(f.doubtful) AS doubtful
  FROM (
    SELECT b.run_id AS run_id, 0 AS has_trace, NULL AS blind,
           CASE WHEN b.truth_0 = 1 THEN b.unknown_0 {"WHEN b.truth_0 = 2 AND b.truth_1 = 1 THEN b.unknown_1 " if where else ""}ELSE NULL END AS unknown,
           CASE WHEN b.truth_0 = 2 THEN 1 ELSE 0 END AS low, CASE WHEN b.truth_0 > 0 THEN 1 ELSE 0 END AS high,
           {"CASE WHEN b.truth_0 = 2 AND b.truth_1 = 0 THEN 1 ELSE 0 END" if where else "0"} AS wrong,
           {"CASE WHEN b.truth_0 > 0 AND b.truth_1 < 2 THEN 1 ELSE 0 END" if where else "0"} AS doubtful
    FROM {table} AS b
    UNION ALL
    SELECT t.run_id AS run_id, 1 AS has_trace, {self._blind()} AS blind, NULL AS unknown,
           0 AS low, 0 AS high, 0 AS wrong, 0 AS doubtful
    FROM run_totals AS t
    JOIN selected_runs AS z ON z.run_id = t.run_id
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""",
            {**compiled.params, **self._bounds},
        )

    @property
    def _bounds(self) -> dict[str, int]:
        given = {"min": self.count.min, "max": self.count.max}
        return {name: bound for name, bound in given.items() if bound is not None}

    def _decided(self, where: bool) -> str:
        counted = decide_sql("g.low", "g.high", self.count.min, self.count.max)
        if not where:
            return counted
        return (
            f"CASE WHEN g.wrong > 0 THEN FALSE WHEN g.doubtful = 0 THEN {counted} "
            f"WHEN ({counted}) = FALSE THEN FALSE ELSE NULL END"
        )

    def _final(self, where: bool) -> str:
        """Return the SQL condition that no further span can change the answer."""
        selected = stays(self.select, met=True)
        sure = []
        if selected and self.count.max is not None:
            sure.append("g.low > :max")
        if selected and not where and self.count.max is None:
            sure.append("g.low >= :min")
        if selected and where and stays(self.where, met=False):
            sure.append("g.wrong > 0")
        return " OR ".join(sure) or "1 = 0"

    def _blind(self) -> str:
        """Return SQL for the relation whose spans the instrumentation cannot record; NULL when it can."""
        asked = [total for total, (kind, columns) in _RECORDED.items() if self._asks(kind, columns)]
        when = "".join(f" WHEN t.{total} IS NULL THEN '{total}'" for total in asked)
        return f"CASE{when} ELSE NULL END" if when else "CASE WHEN 1 = 0 THEN 'spans' ELSE NULL END"

    def _asks(self, kind: str, columns: tuple[str, ...]) -> bool:
        return any(
            any(matcher(kind) for matcher in (one.kind or ()) if kind) or not one.model_fields_set.isdisjoint(columns)
            for condition in self._conditions
            for one in _within(condition)
        )

    def evidence(self) -> Query:
        """Return the spans that do not satisfy `where` first, then the selected ones, then those that may be."""
        compiled, table = self._compiled
        order = "CASE WHEN b.truth_0 = 2 THEN 1 ELSE 2 END"
        note = "CASE WHEN b.truth_0 = 1 THEN ', perhaps selected' ELSE '' END"
        if self.where is not None:
            order = f"CASE WHEN b.truth_0 = 2 AND b.truth_1 = 0 THEN 0 ELSE {order} END"
            note = f"CASE WHEN b.truth_0 = 2 AND b.truth_1 = 0 THEN ', does not satisfy `where`' ELSE {note} END"
        return Query(
            f"""
WITH {", ".join(compiled.tables)}
SELECT b.run_id AS run_id, b.span_id AS span_id, coalesce(b.kind, 'span') || ' ' || coalesce(b.name, '') || {note} AS why,
       row_number() OVER (PARTITION BY b.run_id ORDER BY {order}, b.start_ns, b.span_id) AS rank
FROM {table} AS b
WHERE b.truth_0 > 0
""",
            compiled.params,
        )

    def expectation(self) -> Any:
        """Return the question as it was written."""
        asked = {"select": self.select, "where": self.where}
        shown = {
            name: one.model_dump(mode="json", by_alias=True, exclude_unset=True) for name, one in asked.items() if one
        }
        return {**shown, "count": self._bounds}

    def actual(self, outcome: Outcome) -> Any:
        """Return how many spans are selected, as an interval, and how many of them do not satisfy `where`."""
        row = outcome.row
        found = {"selected": [int(row["low"]), int(row["high"])]}
        if self.where is not None:
            found["not_where"] = [int(row["wrong"]), int(row["doubtful"])]
        return found

    def explain(self, outcome: Outcome) -> str:
        """Say how many spans are selected, and how many of them do not satisfy `where`."""
        row = outcome.row
        low, high = int(row["low"]), int(row["high"])
        said = f"{plural(low, 'span')} selected" if low == high else f"{low} to {high} spans selected"
        said += f", expected {words(self.count.min, self.count.max)}"
        if self.where is None:
            return f"{said}."
        if row["wrong"]:
            return f"{said}; {int(row['wrong'])} of them {'does' if row['wrong'] == 1 else 'do'} not satisfy `where`."
        if row["doubtful"]:
            return f"{said}; of {int(row['doubtful'])} it is unknown whether they satisfy `where`."
        return f"{said}; every one of them satisfies `where`." if high else f"{said}."


def _within(condition: Any) -> Iterator[Any]:
    """Yield a condition and all inside of it."""
    yield condition
    for part in parts_of(condition):
        yield from _within(part)
