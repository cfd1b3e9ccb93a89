"""How the spans of a batch come out of the store: what is each span's own row by row, what many share once.

A Python object for each value of each column was a quarter of Python's work on facts. Most columns (name, kind, model, what
a dialect says of a kind of span) take few values together: in the recordings of all clients one combination covers 35
spans, in many runs of one program for thousands. So DuckDB groups them, and only what is each span's own becomes objects span
by span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import add, itemgetter
from typing import Any, NamedTuple, overload

from clawtrace.dialects.message_parts import Part
from clawtrace.facts.spans.span import Span
from clawtrace.model.run import CARRIED
from clawtrace.store.api import FactSide

__all__ = ["Payload", "SharedParts", "read_spans", "take_payloads"]

_FEW = 2_000
"""Spans that are read as they are: a second question costs two milliseconds of planning."""

_PAGE = 20_000
"""Spans whose payloads are in memory together: those of a long conversation are most of what its run holds."""

_IS_INPUT = "f.kind IN ('llm', 'agent')"
_IS_OUTPUT = "(f.kind IN ('llm', 'agent') OR f.role = 'history')"

_PAYLOADS = " UNION ALL ".join(
    f"SELECT f.sid AS sid, '{direction}' AS direction, f.{direction}_format AS form, f.{direction}_payload AS payload "
    f"FROM fact_rows AS f WHERE f.sid BETWEEN $first AND $last AND {is_one} AND f.{direction}_format IS NOT NULL "
    f"AND f.{direction}_payload IS NOT NULL"
    for direction, is_one in (("input", _IS_INPUT), ("output", _IS_OUTPUT))
)

_FROM_KEYS = frozenset(
    ("sid", "run_no", "trace_id", "span_id", "source", "name", "start_ns", "end_ns", "flags", "links", "dropped", "shortened")
)  # fmt: skip
_PLACEHOLDERS = "('unknown', 'undefined', 'null', 'None', 'True', 'False')"
"""What instrumentations write for a name that they do not know."""

_ELSEWHERE = {
    "parent_sid": "p.sid",
    "parent_span_id": "CASE WHEN p.sid IS NULL THEN k.parent_span_id END",
    "trace_state": "nullif(k.trace_state, '')",
    "carried": f"coalesce(k.run_rule IN ({', '.join(map(repr, sorted(CARRIED)))}), TRUE)",
    "scope": "coalesce(k.scope, '')",
    "version": "coalesce(k.version, '')",
    "unlike_total": "coalesce(f.total_tokens <> f.input_tokens + f.output_tokens, FALSE)",
    "tool_name": f"CASE WHEN f.tool_name NOT IN {_PLACEHOLDERS} THEN f.tool_name END",
    "agent_name": f"CASE WHEN f.agent_name NOT IN {_PLACEHOLDERS} THEN f.agent_name END",
    "message": "coalesce(f.error_message, f.error_type)",
    "input_digest": f"CASE WHEN {_IS_INPUT} AND f.input_payload IS NOT NULL THEN hash(f.input_payload) END",
    "output_digest": f"CASE WHEN {_IS_OUTPUT} AND f.output_payload IS NOT NULL THEN hash(f.output_payload) END",
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


def read_spans(side: FactSide, count: int) -> Iterable[Span]:
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


class Payload(NamedTuple):
    """Messages as recorded."""

    sid: int
    direction: str
    """`input` or `output`."""
    form: str
    """How they are written: a key of `FORMATS`."""
    text: str


def take_payloads(side: FactSide) -> Iterator[Payload]:
    """Yield the messages of the batch's spans, in order of `Span.sid`, a page at a time; what was read of many is let go."""
    ((last,),) = side.script("SELECT coalesce(max(sid), -1) FROM fact_rows")
    for first in range(0, last + 1, _PAGE):
        page = side.script(_PAYLOADS, {"first": first, "last": first + _PAGE - 1})
        yield from map(Payload._make, sorted(page, key=_sid))
    if last > _PAGE:
        for column in ("input_payload", "output_payload"):
            side.script(f"ALTER TABLE fact_rows DROP COLUMN {column}")


def _spans(rows: list[tuple[Any, ...]], combinations: dict[int, tuple[Any, ...]]) -> Iterator[Span]:
    """Yield the spans; a row that was read is not kept in addition to its span."""
    rows.reverse()
    while rows:
        row = rows.pop()
        yield _span(row + combinations[row[0]])


_NUMBERS = 2
"""The first fields of a part say where it is in its payload; the others say the same in every payload."""


class SharedParts:
    """Keeps the parts of many payloads."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def of(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Return the parts of one payload, kept: each is made on first use."""
        known = self._known.setdefault
        numbers = tuple([known(part[:_NUMBERS], part[:_NUMBERS]) for part in parts])
        said = [part[_NUMBERS:] for part in parts]
        return _Parts(known(numbers, numbers), tuple([known(one, one) for one in said]))


class _Parts(Sequence[Part]):
    __slots__ = ("_numbers", "_said")

    def __init__(self, numbers: tuple[tuple[Any, ...], ...], said: tuple[tuple[Any, ...], ...]) -> None:
        self._numbers = numbers
        self._said = said

    def __len__(self) -> int:
        return len(self._said)

    @overload
    def __getitem__(self, place: int) -> Part: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Part]: ...
    def __getitem__(self, place: int | slice) -> Part | Sequence[Part]:
        if isinstance(place, slice):
            return _Parts(self._numbers[place], self._said[place])
        return Part._make(self._numbers[place] + self._said[place])

    def __iter__(self) -> Iterator[Part]:
        return map(Part._make, map(add, self._numbers, self._said))
