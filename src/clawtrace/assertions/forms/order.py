"""The form `order`: what came in which order, such as a sequence of tools, a path of delegations, a row of equal calls.

A function looks at all rows of one run. It answers True where every world that the spans allow is right: each row that is
not certain is there or not, a name that is unknown is any name, and a gap holds up to so many rows more. Where names are
expected one after the other, SQL alone settles at once the runs of which the certain rows are enough (`InTurn`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, NamedTuple, TypeVar

from clawtrace.assertions.forms.form import Form, Outcome, Row
from clawtrace.assertions.forms.sources import SOURCES, Source, UnionPart, rows_evidence, union
from clawtrace.assertions.forms.where import ANY, Where
from clawtrace.model.query import Query, Resolve

__all__ = ["WORLDS", "InTurn", "Order", "OrderAnswer", "OrderedRows", "worlds"]

WORLDS = 64
"""The most worlds that are tried one by one; of more, only the extreme ones are."""

_OF_GAPS = ("start_ns", "end_ns")
"""Columns that a gap has as well: between these instants its rows would be."""

T = TypeVar("T")


def worlds(choices: Sequence[Sequence[T]]) -> Iterator[tuple[T, ...]] | None:
    """Return every way to choose one of each; None where there are more than `WORLDS`."""
    return product(*choices) if prod(map(len, choices)) <= WORLDS else None


class OrderedRows(NamedTuple):
    """The recorded rows of one run."""

    rows: Sequence[Row]
    """The rows in order, with ``no``, ``name``, ``certain`` and the columns that the question names."""
    gaps: Sequence[Row]
    """Rows that nothing records: ``name``, ``at_most`` and times, each NULL where anything may be, and ``reason``."""
    requests: Sequence[Row]
    """Of tools: what was asked for in vain, ``name`` and ``reason``."""
    world: Sequence[Row]
    """The values that the assertion read from the world."""


class OrderAnswer(NamedTuple):
    """The answer of a function."""

    holds: bool | None
    more: Mapping[str, Any]
    """Values for the sentence."""
    absent: bool = False
    missing: str = ""
    """If `holds` is None, the unknown fact; empty for the relation itself."""


class InTurn(NamedTuple):
    """Names that are expected one after the other, where SQL alone finds at once that they are: of many runs, most.

    Each is met by the row that begins first among those that end after everything before has begun. That is exact for
    distinct names, and for repeated ones where rows end as they begin.
    """

    bound: str
    """Relation of the names that meet each expectation."""
    goal: int
    """The number of expectations; ``met`` is the number of certainly met ones."""
    begins: str
    """SQL over ``c``; where a row began before one that began earlier had ended, ``overlapping`` is 1."""
    ends: str
    """The same."""

    def tables(self, source: Source) -> list[str]:
        """SQL: every certain row of a known name and start with what it meets, and when each expectation is met."""
        meeting = f"""meeting AS (
  SELECT c.run_id AS run_id, c.{source.number} AS no, {self.begins} AS begins, {self.ends} AS ends, m.item AS item
  FROM {source.counted} AS c
  JOIN {self.bound} AS m ON m.value = c.name
  JOIN selected_runs AS s ON s.run_id = c.run_id
  WHERE c.certain AND c.start_ns IS NOT NULL
)"""
        return [meeting, *(f"step_{item} AS (\n{_step(item)}\n)" for item in range(self.goal))]

    def parts(self) -> list[UnionPart]:
        """The columns of the tables in the union."""
        steps = [UnionPart("d", f"step_{item} AS d", {"met": str(item + 1)}) for item in range(self.goal)]
        overlapping = {"overlapping": "max(CASE WHEN y.begins < y.latest THEN 1 ELSE 0 END)"}
        return [*steps, UnionPart("y", _SIDE_BY_SIDE, overlapping)]


_SIDE_BY_SIDE = """(
      SELECT b.run_id AS run_id, b.begins AS begins,
             max(b.ends) OVER (
               PARTITION BY b.run_id ORDER BY b.begins, b.no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
      FROM (SELECT DISTINCT e.run_id AS run_id, e.no AS no, e.begins AS begins, e.ends AS ends FROM meeting AS e) AS b
    ) AS y GROUP BY y.run_id"""


def _step(item: int) -> str:
    if not item:
        return "SELECT k.run_id AS run_id, min(k.begins) AS latest FROM meeting AS k WHERE k.item = 0 GROUP BY k.run_id"
    return f"""SELECT k.run_id AS run_id,
       CASE WHEN min(k.begins) > max(p.latest) THEN min(k.begins) ELSE max(p.latest) END AS latest
FROM meeting AS k JOIN step_{item - 1} AS p ON p.run_id = k.run_id
WHERE k.ends > p.latest AND k.item = {item}
GROUP BY k.run_id"""


@dataclass(frozen=True)
class Order(Form):
    """The rows of one run are looked at as a whole."""

    source: str
    """One of `SOURCES`; rows come in the order of their numbers."""
    answer: Callable[[OrderedRows], OrderAnswer]
    """Answers for one run, from what is recorded of it."""
    in_turn: InTurn | None = None
    """The part that SQL decides; None: the function answers for every run with rows."""
    empty: bool | None = None
    """The answer where there is no row and nothing may be missing; None: the function answers."""
    columns: tuple[str, ...] = ()
    """The columns of a row that the function reads, except the name."""
    resolved: tuple[Resolve, ...] = ()
    where: Where = ANY
    """Which rows and gaps evidence shows; what it does not know of a row is a doubt."""
    shown: str = ""
    """SQL over ``r``: what evidence says of a row."""
    first: str = ""
    """SQL over ``r`` by which evidence is ordered before the rows' numbers."""

    @property
    def fact(self) -> str:  # type: ignore[override]
        """The relation."""
        return self._source.relation

    @property
    def _source(self) -> Source:
        return SOURCES[self.source]

    def resolve(self) -> Sequence[Resolve]:
        """Return what the assertion resolves."""
        return self.resolved

    def query(self) -> Query:
        """Answer what SQL alone can, and leave the rest to the function."""
        source, turn = self._source, self.in_turn
        rows = {"low": "count(CASE WHEN r.certain THEN 1 END)", "high": "count(*)"}
        parts = [
            UnionPart("t", "run_totals AS t", {"traced": "1"}),
            UnionPart("r", f"{source.counted} AS r GROUP BY r.run_id", rows),
            UnionPart("p", f"gaps AS p WHERE p.relation = '{source.relation}'", {"gaps": "1"}),
            *([UnionPart("r", "tool_requests AS r", {"asked": "1"})] if source.relation == "tool_calls" else ()),
            *(turn.parts() if turn else ()),
        ]
        of_turn = ("met", "overlapping") if turn else ()
        names = dict.fromkeys(("traced", "low", "high", "gaps", "asked", *of_turn), "0")
        settled = {f"g.met = {turn.goal}": "TRUE"} if turn else {}
        if self.empty is not None:
            settled["g.high = 0 AND g.gaps = 0 AND g.asked = 0"] = str(self.empty).upper()
        settled = settled or {"1 = 0": "TRUE"}
        answers = "".join(f"WHEN {where} THEN {answer} " for where, answer in settled.items())
        return Query(f"""
{f"WITH {', '.join(turn.tables(source))}" if turn else ""}
SELECT g.run_id AS run_id, {", ".join(f"g.{name} AS {name}" for name in names if name != "traced")},
       CASE {answers}ELSE NULL END AS holds,
       CASE WHEN {" OR ".join(settled)} THEN FALSE ELSE TRUE END AS by_function
FROM (
  SELECT f.run_id AS run_id, {", ".join(f"max(f.{name}) AS {name}" for name in names)}
  FROM (
{union(parts, names)}
  ) AS f
  JOIN selected_runs AS s ON s.run_id = f.run_id
  GROUP BY f.run_id
) AS g
WHERE g.traced = 1
""")

    def details(self) -> Query:
        """Return the rows in order, what was asked for in vain, and the gaps."""
        relation, number = self._source.relation, self._source.number
        of_row = "".join(f", r.{name} AS {name}" for name in self.columns)
        none = "".join(f", NULL AS {name}" for name in self.columns)
        of_gap = "".join(f", {f'p.{name}' if name in _OF_GAPS else 'NULL'} AS {name}" for name in self.columns)
        asked = f"""
  UNION ALL
  SELECT b.run_id AS run_id, 'request' AS kind, b.request_no AS no, b.name AS name, FALSE AS certain, NULL AS at_most,
         b.reason AS reason{none}
  FROM tool_requests AS b
  JOIN selected_runs AS v ON v.run_id = b.run_id"""
        return Query(f"""
SELECT d.run_id AS run_id, d.kind AS kind, d.no AS no, d.name AS name, d.certain AS certain, d.at_most AS at_most,
       d.reason AS reason{"".join(f", d.{name} AS {name}" for name in self.columns)}
FROM (
  SELECT r.run_id AS run_id, 'row' AS kind, r.{number} AS no, r.name AS name, r.certain AS certain, NULL AS at_most,
         NULL AS reason{of_row}
  FROM {self._source.counted} AS r
  JOIN selected_runs AS s ON s.run_id = r.run_id
  UNION ALL
  SELECT p.run_id AS run_id, 'gap' AS kind, 0 AS no, p.name AS name, FALSE AS certain, p.at_most AS at_most,
         p.reason AS reason{of_gap}
  FROM gaps AS p
  JOIN selected_runs AS q ON q.run_id = p.run_id
  WHERE p.relation = '{relation}'{asked if relation == "tool_calls" else ""}
) AS d
ORDER BY d.run_id, d.kind, d.no, d.name, d.at_most, d.reason{"".join(f", d.{name}" for name in self.columns)}
""")

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Let the function answer; the outcome's row has the answer as ``holds``, and what it was given as ``rows``."""
        kinds: dict[str, list[Row]] = {"row": [], "gap": [], "request": [], "world": []}
        for one in details:
            kinds[one.get("kind", "world")].append(one)
        recorded = OrderedRows(*kinds.values())
        holds, more, absent, missing = self.answer(recorded)
        found = {**row, "holds": holds, "rows": recorded.rows, "requests": recorded.requests, **more}
        return Outcome(row["run_id"], holds, "" if holds is not None else missing or self.fact, found, absent)

    def evidence(self) -> Query:
        """Return the rows, those in doubt marked, and the gaps."""
        return rows_evidence(self._source, [self.where], self.shown, self.first, {})
