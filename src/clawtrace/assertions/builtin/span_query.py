"""`span_query`: a structural selection over the span tree."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import Bounds, Counted, check_bounds, interval, words
from clawtrace.assertions.forms.count import Count, CountedRows, share
from clawtrace.assertions.forms.sources import Source
from clawtrace.assertions.forms.where import Where
from clawtrace.assertions.refused import refused
from clawtrace.assertions.spans.span_condition import SpanCondition
from clawtrace.assertions.spans.span_related import nth_sql
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
    `counted_as: call` leaves out the others that record the same call. `nth` takes one of the selected spans, `share` is content
    with fewer than all of them, and `count` inside of `child` and `descendant` says how many there are.

    Example:
        - type: span_query
          select: {kind: tool, tool_name: "re:^search", ancestor: {kind: agent, agent_name: researcher}}
          where: {duration_ns: "<30s", not: {descendant: {error: any}}}
          count: {min: 1, max: 5}
    """

    main_field = "select"
    requires = ("spans.kind", "spans.tree_enter", "spans.tree_leave")

    select: SpanCondition
    """The condition that selects spans; `{}` selects all."""
    where: SpanCondition | None = None
    """The condition that every selected span must satisfy."""
    count: Counted = Bounds(min=1)
    """The allowed number of spans: a number, or `min`, `max` or both."""
    nth: Annotated[int, Field(strict=True)] | Literal["first", "last"] | None = None
    """Take the first or the last selected span by start, or a number from 1, or from -1 for the last; `count` and `where` are about
    this one."""
    share: Annotated[float, Field(strict=True, gt=0, le=1)] | None = None
    """Share of the selected spans that must satisfy `where`, in place of all of them; without a selected span it is unknown."""

    @model_validator(mode="after")
    def _check(self) -> SpanQuery:
        if self.where is not None and not self.where.model_fields_set:
            raise refused("an empty condition matches every span: state what each selected span must satisfy", "where")
        check_bounds(self.count.min, self.count.max, alone=self.where is None, field="count")
        for field, condition in (("select", self.select), ("where", self.where)):
            if condition is not None and condition.count is not None:
                raise refused("`count` is about the selected spans: write it beside `select`", field)
        if self.nth == 0:
            raise refused("must be 1 for the first, or -1 for the last, and so on", "nth")
        if self.share is not None and (self.where is None or self.nth is not None or "count" in self.model_fields_set):
            raise refused("is the share of spans that satisfy `where`, without `count` and `nth`", "share")
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
        if self.nth is not None:
            relations = ", ".join(f"'{name}'" for name in ("spans", *hidden))
            gap = f"q.run_id IN (SELECT p.run_id FROM gaps AS p WHERE p.relation IN ({relations}) AND {HIDES_SPANS})"
            number = {"first": 1, "last": -1}.get(str(self.nth)) or int(self.nth)
            wanted = ("run_id", "span_id", "kind", "name", "start_ns", *(["truth_1"] if self.where else []))
            table = nth_sql(table, number, ", ".join(f"t.{name} AS {name}" for name in wanted), gap)
            table = f"{table} AS n"
        if self.share is not None:
            columns = columns.replace("TRUE", "truth_0 = 2")
            table += " WHERE truth_0 > 0"
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
        if self.share is not None:
            fits = "CASE r.truth_1 WHEN 2 THEN TRUE WHEN 0 THEN FALSE ELSE NULL END"
            within = Where(fits, HIDES_SPANS, resolve=tuple(compiled.resolve), params=compiled.params)
            of = " satisfy `where`"
            return share(source, within, self.share, noun="selected span", of=of, shown=shown, order=order)
        return Count(source, tuple(tallies), shown=shown, order=order)

    def expectation(self) -> Any:
        """Return the question as it was written."""
        asked = {"select": self.select, "where": self.where}
        shown = {
            name: one.model_dump(mode="json", by_alias=True, exclude_unset=True) for name, one in asked.items() if one
        }
        if self.share is not None:
            return {**shown, "share": self.share}
        nth = {} if self.nth is None else {"nth": self.nth}
        return {**shown, **nth, "count": self.count.model_dump(exclude_none=True)}

    def explain(self, outcome: Outcome) -> str:
        """Return how many spans are selected, and how many of them do not satisfy `where`."""
        row = outcome.row
        if self.share is not None:
            return self.question().sentence(outcome)
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
