"""How the spans of a batch come out of the store: what is each span's own row by row, what many share once.

A Python object for each value of each column was a quarter of Python's work on facts. Most columns (name, kind, model, what
a dialect says of a kind of span) take few values together: in the recordings of all clients one combination stands for 35
spans, in many runs of one program for thousands. So DuckDB groups them, and only what is each span's own becomes objects span
by span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from clawtrace.engine.span import Span
from clawtrace.model.run import CARRIED
from clawtrace.store.question_side import QuestionSide

__all__ = ["read_spans"]

_FEW = 2_000
"""Spans that are read as they are: a second question costs two milliseconds of planning."""

_FROM_KEYS = frozenset(
    ("sid", "run_no", "trace_id", "span_id", "source", "name", "start_ns", "end_ns", "flags", "dropped")
)  # fmt: skip
_ELSEWHERE = {
    "parent_sid": "p.sid",
    "parent_span_id": "CASE WHEN p.sid IS NULL THEN k.parent_span_id END",
    "trace_state": "nullif(k.trace_state, '')",
    "carried": f"coalesce(k.run_rule IN ({', '.join(map(repr, sorted(CARRIED)))}), TRUE)",
    "scope": "coalesce(k.scope, '')",
    "message": "coalesce(f.error_message, f.error_type)",
    "input_payload": "CASE WHEN f.kind IN ('llm', 'agent') THEN f.input_payload END",
    "output_payload": "CASE WHEN f.kind IN ('llm', 'agent') OR f.role = 'history' THEN f.output_payload END",
}
_PLACES = [
    _ELSEWHERE.get(name, f"k.{name}" if name in _FROM_KEYS else f"f.{name}") + f" AS {name}" for name in Span._fields
]
_SHARED = Span._fields.index("source")
"""Place of the first fact that comes in few combinations."""

_ROWS = "FROM fact_keys AS k JOIN fact_rows AS f ON f.sid = k.sid"
_PARENTS = (
    "LEFT JOIN fact_keys AS p ON p.run_no = k.run_no AND p.trace_id = k.trace_id AND p.span_id = k.parent_span_id"
)

_WHOLE = f"SELECT {', '.join(_PLACES)} {_ROWS} {_PARENTS}"
_OWN = f"SELECT {', '.join(_PLACES[:_SHARED])} {_ROWS} {_PARENTS}"
_COMBINATIONS = f"SELECT list(k.sid), {', '.join(_PLACES[_SHARED:])} {_ROWS} GROUP BY ALL"

_sid = itemgetter(0)
_span = partial(tuple.__new__, Span)


def read_spans(side: QuestionSide, count: int) -> Iterable[Span]:
    """Return the spans of the batch that ``fact_keys`` and ``fact_rows`` hold, in order of `Span.sid`.

    Args:
        side: holds the batch.
        count: about how many there are.
    """
    if count <= _FEW:
        # Python sorts what comes nearly in order faster than DuckDB all the columns.
        return map(_span, sorted(side.script(_WHOLE), key=_sid))
    own = side.columns(_OWN)
    rows = sorted(zip(*map(own.column, Span._fields[:_SHARED]), strict=True), key=_sid)
    combinations: dict[int, tuple[Any, ...]] = {}
    for sids, *values in side.script(_COMBINATIONS):
        combinations.update(dict.fromkeys(sids, tuple(values)))
    return _spans(rows, combinations)


def _spans(rows: list[tuple[Any, ...]], combinations: dict[int, tuple[Any, ...]]) -> Iterator[Span]:
    """Yield the spans; a row that was read is not kept beside its span."""
    rows.reverse()
    while rows:
        row = rows.pop()
        yield _span(row + combinations[row[0]])
