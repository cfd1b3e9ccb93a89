"""`sql`: a question of one's own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.forms.form import Form
from clawtrace.assertions.forms.sources import gap_rows
from clawtrace.assertions.probing.documents import same
from clawtrace.assertions.refused import refused
from clawtrace.model.query import Limits, Query
from clawtrace.model.relations import RELATIONS

__all__ = ["Sql"]

_CERTAIN = "of_certain_rows"
"""The column that tells the two answers apart."""

_ROWS = 100
"""Rows that are fetched and shown when none, or fewer, are expected."""

_SHOWN_ROWS, _SHOWN_LENGTH = 3, 200
"""Rows of each kind that the message shows, and characters of each."""

_HAS_CERTAIN = ("llm_calls", "tool_calls", "commands", "agents", "errors")
"""Relations whose rows may be in doubt."""
_GAPS: dict[str, tuple[str, ...]] = {name: (name,) for name in (*_HAS_CERTAIN, "messages")}
_GAPS |= {"run_tools": ("tool_calls",), "commands": ("commands", "tool_calls")}
"""Relations of which rows may be missing, by what a query names: where they are said to be missing."""
_RELATION = re.compile(rf"(?:(?<![\w.])|(?<=\bmain\.))({'|'.join(_GAPS)})\b", re.IGNORECASE)
_MINDS_DOUBTS = re.compile(r"\b(?:certain|doubts)\b", re.IGNORECASE)
_MINDS_GAPS = re.compile(r"\bgaps\b", re.IGNORECASE)

_RETURNED = re.compile(r"\s*select\b[^()]*?\bfrom\b", re.IGNORECASE)
"""What a plain query returns: where no row is right, these columns decide nothing."""
_MAY_TAKE_BACK = re.compile(r"\(|\b(?:not|null|except|case|distinct|left|right|full|limit)\b", re.IGNORECASE)
"""What a query has by which an unknown value, once it is known, could take back a row that was found."""

_SELECT = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*+(?:select|with|from|values)\b", re.IGNORECASE | re.DOTALL)
"""The beginning of a SELECT, including comments and brackets before it."""


def _check_select(text: str) -> str:
    if not _SELECT.match(text):
        raise refused(f"must be one SELECT, found {text.split(maxsplit=1)[0] if text.split() else text!r}")
    if not re.search(r"(?<!:):run_id\b", text):
        raise refused(
            "must use `:run_id`, for example WHERE run_id = :run_id: otherwise other runs influence the verdict"
        )
    return text


@dataclass(frozen=True)
class _Select(Form):
    """The SELECT over all rows, and where rows may be in doubt over those that are certain: two answers that differ are open."""

    select: str
    expected: Sequence[Any]
    time_limit_s: float

    @property
    def _named(self) -> list[str]:
        """The relations that the query may read, each once."""
        return list(dict.fromkeys(found.lower() for found in _RELATION.findall(self.select)))

    @property
    def fact(self) -> str:  # type: ignore[override]
        """The first relation."""
        return next(iter(self._named), "spans")

    @property
    def _in_doubt(self) -> list[str]:
        """The relations that it reads without a thought of rows in doubt."""
        return [] if _MINDS_DOUBTS.search(self.select) else [name for name in self._named if name in _HAS_CERTAIN]

    @property
    def _values(self) -> str:
        """SQL over ``d``: the values in doubt, of columns that it compares."""
        relations = {one for name in self._named for one in _GAPS[name]}
        compared = self.select if self.expected else _RETURNED.sub(" ", self.select, count=1)
        words = set(re.findall(r"\w+", compared.lower()))
        asked = sorted(words.intersection(name for one in relations for name in RELATIONS[one].column_names))
        if _MINDS_DOUBTS.search(self.select) or not asked:
            return "1 = 0"
        return f"d.relation IN ({', '.join(map(repr, sorted(relations)))}) AND d.column_name IN ({', '.join(map(repr, asked))})"

    @property
    def _gaps(self) -> str:
        """SQL over ``p``: the gaps that concern it. What an SDK asked again is looked for by none who does not ask for gaps."""
        named = [] if _MINDS_GAPS.search(self.select) else self._named
        relations = dict.fromkeys(["spans", *(one for name in named for one in _GAPS[name])])
        return f"""p.relation IN ({", ".join(map(repr, relations))})
      AND CASE WHEN p.relation = 'llm_calls' AND p.outcome = 'error' THEN FALSE ELSE TRUE END"""

    def query(self) -> Query:
        """Return the runs to ask about, how many rows are in doubt, and whether rows may be missing."""
        doubts = [f"SELECT r.run_id AS run_id FROM {name} AS r WHERE r.certain = FALSE" for name in self._in_doubt]
        unsure = " UNION ALL ".join(doubts) or "SELECT r.run_id AS run_id FROM run_totals AS r WHERE 1 = 0"
        return Query(f"""
SELECT t.run_id AS run_id, NULL AS holds, TRUE AS by_function, coalesce(d.n, 0) AS unsure, coalesce(g.n, 0) AS gaps,
       coalesce(v.n, 0) AS unknown_values
FROM run_totals AS t
JOIN selected_runs AS s ON s.run_id = t.run_id
LEFT JOIN (SELECT u.run_id AS run_id, count(*) AS n FROM ({unsure}) AS u GROUP BY u.run_id) AS d ON d.run_id = t.run_id
LEFT JOIN (
  SELECT p.run_id AS run_id, count(*) AS n FROM gaps AS p
  WHERE {self._gaps} GROUP BY p.run_id
) AS g ON g.run_id = t.run_id
LEFT JOIN (SELECT d.run_id AS run_id, count(*) AS n FROM doubts AS d WHERE {self._values} GROUP BY d.run_id) AS v ON v.run_id = t.run_id
""")

    def details(self) -> Query:
        """Return the user's own query; where rows may be in doubt, over the certain ones as well, each row with which it is of."""
        fetched = max(_ROWS, len(self.expected)) + 1
        if not self._in_doubt:
            return Query(self.select, by_run=Limits(self.time_limit_s, fetched))
        certain = ", ".join(f"{name} AS (SELECT * FROM {name} WHERE certain)" for name in self._in_doubt)
        return Query(
            f"""SELECT TRUE AS {_CERTAIN}, x.* FROM (
WITH {certain}
SELECT * FROM (
{self.select}
) AS y LIMIT {fetched}) AS x
UNION ALL
SELECT FALSE AS {_CERTAIN}, x.* FROM (SELECT * FROM (
{self.select}
) AS y LIMIT {fetched}) AS x""",
            by_run=Limits(self.time_limit_s, 2 * fetched),
        )

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Compare the rows with those expected, over all rows and over the certain ones."""
        rows: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
        for detail in details:
            of_certain = bool(detail.get(_CERTAIN, False))
            rows[of_certain].append({name: _plain(value) for name, value in detail.items() if name != _CERTAIN})
        holds: bool | None = self._is_right(rows[False])
        differs = row["unsure"] and self._is_right(rows[True]) != holds
        may_differ = row["unknown_values"] and (holds or self.expected or _MAY_TAKE_BACK.search(self.select))
        if row["gaps"] or differs or may_differ:
            holds = None
        found = {**row, "rows": rows[False], "certain": rows[True] if row["unsure"] else rows[False]}
        return Outcome(row["run_id"], holds, self.fact if holds is None else "", found)

    def _is_right(self, rows: Sequence[Any]) -> bool:
        return not any(_differing(rows, self.expected))

    def evidence(self) -> Query:
        """Return why rows may be missing, or are in doubt."""
        listed = ", ".join(map(repr, self._in_doubt)) or "''"
        return Query(f"""
SELECT e.run_id AS run_id, e.span_id AS span_id, e.why AS why, e.reason AS reason,
       row_number() OVER (PARTITION BY e.run_id ORDER BY e.place, e.no, e.why, e.reason, e.span_id) AS rank
FROM (
  SELECT d.run_id AS run_id, d.span_id AS span_id,
         coalesce('row ' || d.row_no, 'rows') || ' of ' || d.relation || coalesce(', ' || d.column_name, '') AS why,
         d.reason AS reason, coalesce(d.row_no, 0) AS no, 1 AS place
  FROM doubts AS d
  JOIN selected_runs AS s ON s.run_id = d.run_id
  WHERE (d.column_name IS NULL AND d.relation IN ({listed})) OR ({self._values})
  UNION ALL
  SELECT o.run_id AS run_id, o.span_id AS span_id, o.why AS why, o.reason AS reason, o.no AS no, o.place AS place
  FROM ({gap_rows("", which=self._gaps)}) AS o
) AS e
""")

    @property
    def _shown(self) -> int:
        return max(_ROWS, len(self.expected))

    def actual(self, row: Row) -> Any:
        """Return the rows that were found, the first ones where there are many."""
        return {"rows": row["rows"][: self._shown]}

    def sentence(self, outcome: Outcome) -> str:
        """Return how many rows were found, and which of them are wrong."""
        rows = outcome.row["rows"]
        found = len(rows)
        all_known = found <= self._shown
        count = plural(found, "row") if all_known else f"more than {self._shown} rows"
        if outcome.holds is None:
            if outcome.row["gaps"]:
                return f"The query returned {count}, and rows may be missing in what it reads."
            if outcome.row["unknown_values"]:
                return f"The query returned {count}, and values that it compares are not recorded."
            return f"The query returned {count}, of the certain rows alone {len(outcome.row['certain'])}: one answer is right, the other is not."
        if outcome.holds:
            return f"The query returned {count}, exactly as expected." if found else "The query returned no row."
        if not self.expected:
            return f"The query returned {count}; there should be none: {_listed(rows, all_known=all_known)}."
        extra, absent = _differing(rows, self.expected)
        differences = {"not expected": extra, "expected and not found": absent}
        differs = "; ".join(f"{word}: {_listed(of, all_known=all_known)}" for word, of in differences.items() if of)
        return f"The query returned {count} where {len(self.expected)} were expected; {differs}."


class Sql(Assertion):
    """The SELECT returns no row for the run, or exactly the rows that are expected.

    For what no other type asks: write the query so that each row is something wrong. It reads the relations (see
    `clawtrace query`) in the store's own SQL, once for each run; it cannot write, attach or read files. Where rows may be missing
    in a relation that it names (`gaps`), the answer is unknown. Where rows of one are in doubt, it is asked over the certain ones
    as well, and answers that differ are no answer. Where a value is in doubt (`doubts`) of a column that it compares, no row and
    expected rows are no answer; a NULL that `doubts` does not list is taken as it is. A query that names `certain`, `doubts` or `gaps` minds them itself; of a
    trace that is not complete the answer is unknown in any case.

    Example:
        - type: sql
          select: >-
            SELECT name, arguments FROM tool_calls
            WHERE run_id = :run_id AND outcome = 'error' AND end_ns - start_ns > 1000000000
    """

    main_field = "select"
    requires = ("run_totals.run_id",)
    unscoped = "put the condition into the SELECT, on `agent_span_id` or `turn`."

    select: Annotated[str, AfterValidator(_check_select)]
    """One SELECT; `:run_id` is replaced by the run's id and must be used."""
    expect: tuple[dict[str, Any], ...] | Literal["fail"] = ()  # type: ignore[assignment]
    """The rows that are right, as mappings from column to value, in any order; by default none. Or `fail`: a known failure."""
    time_limit_s: Annotated[float, Field(strict=True, gt=0, le=600)] = 5.0
    """The longest time of the query for one run, in seconds; beyond it the assertion ends as an error."""

    @property
    def _expected(self) -> list[Any]:
        return [_plain(row) for row in (() if self.expect == "fail" else self.expect or ())]

    def question(self) -> Form:
        """Ask the query."""
        return _Select(self.select, self._expected, self.time_limit_s)

    def expectation(self) -> Any:
        """Return the rows that are right."""
        return {"rows": self._expected}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: decimals as numbers, times and the like as text."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Decimal):
        return float(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _listed(rows: Sequence[Any], *, all_known: bool = True) -> str:
    """Return the first of some rows as JSON, each cut to a readable length; of many not `all_known` ones were fetched."""
    shown = [json.dumps(row, ensure_ascii=False) for row in rows[:_SHOWN_ROWS]]
    more = [f"and {len(rows) - _SHOWN_ROWS} more" if all_known else "and more"] if len(rows) > _SHOWN_ROWS else []
    return ", ".join([one if len(one) <= _SHOWN_LENGTH else one[: _SHOWN_LENGTH - 1] + "…" for one in shown] + more)


def _differing(found: Sequence[Any], expected: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the rows that were found and not expected, and those that were expected and not found.

    A row counts as often as it is there; booleans are no numbers.
    """
    extra, left = [], list(expected)
    for row in found:
        place = next((place for place, other in enumerate(left) if same(row, other)), None)
        if place is None:
            extra.append(row)
        else:
            del left[place]
    return extra, left
