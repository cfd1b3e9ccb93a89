"""`span_query`: a structural selection over the span tree."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import Bounds, Counted, check_bounds, interval, words
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.sources import Source
from clawtrace.assertions.forms.where import Where
from clawtrace.assertions.refused import refused
from clawtrace.assertions.spans.span_condition import SpanCondition
from clawtrace.assertions.spans.span_sql import HIDES_SPANS, compile_conditions, unseen_relations

__all__ = ["SpanQuery"]

_SELECTED = "CASE r.truth_0 WHEN 2 THEN TRUE WHEN 0 THEN FALSE ELSE NULL END"
_WRONG = """CASE WHEN r.truth_0 = 2 AND r.truth_1 = 0 THEN TRUE WHEN r.truth_0 = 0 OR r.truth_1 = 2 THEN FALSE ELSE NULL END"""
_NOTE = "CASE WHEN r.truth_0 = 1 THEN ', perhaps selected' ELSE '' END"


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

    def question(self) -> Count:
        """Count the spans that are selected, and those among them that do not satisfy `where`."""
        compiled, table = compile_conditions(self._conditions)
        _, *hidden = unseen_relations(self.select)
        columns = "run_id, span_id, kind, name, start_ns, TRUE AS certain"
        truths = ", ".join(f"truth_{place}" for place in range(len(self._conditions)))
        spans = f"(WITH {', '.join(compiled.tables)}\nSELECT {columns}, {truths} FROM {table})"
        selected = Where(_SELECTED, HIDES_SPANS, resolve=tuple(compiled.resolve), params=compiled.params)
        tallies = [CountedRows(selected, self.count.min, self.count.max, "span", " selected")]
        note, order = _NOTE, "0"
        if self.where is not None:
            tallies.append(CountedRows(Where(_WRONG, HIDES_SPANS), max=0, noun="span", key="_wrong"))
            order = f"CASE WHEN {_WRONG} THEN 0 ELSE 1 END"
            note = f"CASE WHEN {_WRONG} THEN ', does not satisfy `where`' ELSE {_NOTE} END"
        source = Source(spans, number="start_ns", relation="spans", hidden=tuple(hidden))
        shown = f"coalesce(r.kind, 'span') || ' ' || coalesce(r.name, '') || {note}"
        return Count(source, tuple(tallies), shown=shown, order=order)

    def expectation(self) -> Any:
        """Return the question as it was written."""
        asked = {"select": self.select, "where": self.where}
        shown = {
            name: one.model_dump(mode="json", by_alias=True, exclude_unset=True) for name, one in asked.items() if one
        }
        return {**shown, "count": self.count.model_dump(exclude_none=True)}

    def explain(self, outcome: Outcome) -> str:
        """Say how many spans are selected, and how many of them do not satisfy `where`."""
        row = outcome.row
        said = f"{interval(row['low'], row['high'], 'span')} selected, expected {words(self.count.min, self.count.max)}"
        said = f"{said[0].upper()}{said[1:]}"
        if self.where is None or row["high"] == 0:
            return f"{said}."
        if row["low_wrong"]:
            return (
                f"{said}; {row['low_wrong']} of them {'does' if row['low_wrong'] == 1 else 'do'} not satisfy `where`."
            )
        if row["high_wrong"] != 0:
            open_ones = row["high_wrong"] or "others"
            return f"{said}; of {open_ones} it is unknown whether they satisfy `where`."
        return f"{said}; every one of them satisfies `where`."
