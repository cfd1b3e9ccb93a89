"""Spans, and rows made of log records, while log records are joined to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from clawtrace.dialects.call_ids import canonical

__all__ = ["EventRecord", "JoinedRow", "RunRows", "comparable"]

SpanKey = tuple[str, str]
"""Trace and span id."""


@dataclass(slots=True, eq=False, repr=False)
class EventRecord:
    """What one event rule reads in one log record."""

    sid: int
    """Number of the record in ``fact_log_raw``."""
    rule: int
    """Number of the event rule."""
    run_no: int
    dialect: str
    kind: str
    failed: bool
    named: SpanKey | None
    """The span that the record names."""
    trace_id: str
    """The trace that it names; empty for none."""
    at_ns: int
    columns: dict[str, Any]
    attributes: dict[str, str | None]


@dataclass(slots=True, eq=False, repr=False)
class JoinedRow:
    """A span, or what only log records describe."""

    sid: int
    """Number of the span; negative for a row that is new."""
    dialect: str
    kind: str
    failed: bool
    key: SpanKey
    above: SpanKey | None
    """The span that it names as its parent; of a new row the span that its record names."""
    start_ns: int
    end_ns: int | None
    columns: dict[str, Any]
    attributes: dict[str, str | None]
    record: EventRecord | None = None
    """The record that a new row was made of."""
    before: list[EventRecord] = field(default_factory=list)
    """Joined records that take precedence over the span."""
    fills: list[EventRecord] = field(default_factory=list)
    parent: JoinedRow | None = None

    def column(self, name: str) -> Any:
        """Return a fact, from the span or the records that were joined to it."""
        places = (*(r.columns for r in self.before), self.columns, *(r.columns for r in self.fills))
        return next((place[name] for place in places if place.get(name) is not None), None)

    def attribute(self, key: str) -> str | None:
        """Return an attribute, of the span or of the first record that has it."""
        places = (self.attributes, *(r.attributes for r in self.before), *(r.attributes for r in self.fills))
        return next((place[key] for place in places if place.get(key) is not None), None)


class RunRows:
    """The rows of one run."""

    def __init__(self, rows: Sequence[JoinedRow]) -> None:
        self.rows = list(rows)
        self._by_key = {row.key: row for row in rows}
        for row in rows:
            row.parent = None if row.above is None else self._by_key.get(row.above)
        self._nearest: dict[tuple[str, int], JoinedRow | None] = {}

    def traces_of_one(self, kind: str) -> dict[str, int]:
        """Return the traces that have exactly one span of a `kind`, with its number."""
        found: dict[str, list[int]] = {}
        for row in self.rows:
            if row.kind == kind and row.record is None:
                found.setdefault(row.key[0], []).append(row.sid)
        return {trace_id: sids[0] for trace_id, sids in found.items() if len(sids) == 1}

    def received(self, key: SpanKey | None) -> JoinedRow | None:
        """Return the span of this key."""
        return None if key is None else self._by_key.get(key)

    def add(self, row: JoinedRow, parent: JoinedRow | None) -> None:
        """Add a row that is new, below `parent`."""
        row.parent = parent
        self.rows.append(row)

    def settle(self) -> None:
        """Forget what was worked out from parents that have changed since."""
        self._nearest.clear()

    def nearest(self, kind: str, row: JoinedRow | None) -> JoinedRow | None:
        """Return the nearest row of a `kind` at or above `row`."""
        path: list[JoinedRow] = []
        seen: set[int] = set()
        found: JoinedRow | None = None
        while row is not None and row.sid not in seen:
            if row.kind == kind:
                found = row
                break
            if (kind, row.sid) in self._nearest:
                found = self._nearest[kind, row.sid]
                break
            seen.add(row.sid)
            path.append(row)
            row = row.parent
        for passed in path:
            self._nearest[kind, passed.sid] = found
        return found

    def first_below(self, kind: str) -> dict[int, JoinedRow]:
        """Return for each row that has rows of a `kind` below it the first of them, by `JoinedRow.sid`."""
        first: dict[int, JoinedRow] = {}
        for row in sorted(self.rows, key=lambda row: (row.start_ns, row.sid)):
            above = row.parent if row.kind == kind else None
            while above is not None and above.sid not in first:
                first[above.sid] = row
                above = above.parent
        return first


def comparable(name: str, value: Any) -> Any:
    """Return the value of a column so that equal facts are equal: arguments without regard to how their JSON is laid out."""
    return canonical(value) if name == "tool_arguments" else value
