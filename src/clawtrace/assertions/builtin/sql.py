"""`sql`: a question of one's own."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.refused import refused
from clawtrace.model.query import ByRun, Query

__all__ = ["Sql"]

_ROWS = 100
"""Rows that are fetched and shown when none, or fewer, are expected."""

_SHOWN_ROWS, _SHOWN_LENGTH = 3, 200
"""Rows of each kind that the message shows, and characters of each."""

# Relations that stay empty where the instrumentation cannot record them, and the total that is then NULL.
_TOTALS = {
    "llm_calls": "llm_calls",
    "tool_calls": "tool_calls",
    "run_tools": "tool_calls",
    "commands": "tool_calls",
    "agents": "agents",
    "errors": "errors",
}
_RELATION = re.compile(rf"(?:(?<![\w.])|(?<=\bmain\.))({'|'.join(_TOTALS)})\b", re.IGNORECASE)


_SELECT = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*+(?:select|with|from|values)\b", re.IGNORECASE | re.DOTALL)
"""How a SELECT begins, comments and brackets before it included."""


def _check_select(text: str) -> str:
    if not _SELECT.match(text):
        raise refused(f"must be one SELECT, found {text.split(maxsplit=1)[0] if text.split() else text!r}")
    if not re.search(r"(?<!:):run_id\b", text):
        raise refused(
            "must use `:run_id`, for example WHERE run_id = :run_id: otherwise other runs influence the verdict"
        )
    return text


class Sql(Assertion):
    """The SELECT returns no row for the run, or exactly the rows that are expected.

    For what no other type asks: write the query so that each row is something wrong. It reads the relations (see
    `clawtrace query`) in the store's own SQL, once for each run; it cannot write, attach or read files. Where it names a
    relation that the run's instrumentation cannot record, an empty one says nothing and the answer is unknown. More
    spans can always change it.

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
    """How long the query may run for one run, in seconds; beyond it the assertion ends as an error."""

    @property
    def _expected(self) -> tuple[dict[str, Any], ...]:
        return () if self.expect == "fail" else self.expect or ()

    def query(self) -> Query:
        """Return the runs to ask about, and what each cannot have recorded."""
        return Query("""
SELECT t.run_id AS run_id, NULL AS holds, FALSE AS final, FALSE AS settled, t.llm_calls AS llm_calls,
       t.tool_calls AS tool_calls, t.agents AS agents, t.errors AS errors
FROM run_totals AS t
JOIN selected_runs AS s ON s.run_id = t.run_id
""")

    def details(self) -> Query:
        """Return the user's own query."""
        return Query(self.select, by_run=ByRun(self.time_limit_s, max(_ROWS, len(self._expected)) + 1))

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Compare the rows with those expected, unless what they are made from cannot have been recorded."""
        rows = [{name: _plain(value) for name, value in detail.items()} for detail in details]
        blind = next((name for name in self._relations if row[_TOTALS[name]] is None), "")
        holds = None if blind else not any(_differing(rows, [_plain(expected) for expected in self._expected]))
        return Outcome(row["run_id"], holds, False, blind, {**row, "rows": rows})

    @property
    def _relations(self) -> list[str]:
        """The relations that the query may read and that may be unrecordable, each once."""
        return list(dict.fromkeys(found.lower() for found in _RELATION.findall(self.select)))

    def expectation(self) -> Any:
        """Return the rows that are right."""
        return {"rows": [_plain(row) for row in self._expected]}

    def actual(self, outcome: Outcome) -> Any:
        """Return the rows that were found, the first ones where there are many."""
        return {"rows": outcome.row["rows"][: self._shown]}

    @property
    def _shown(self) -> int:
        return max(_ROWS, len(self._expected))

    def explain(self, outcome: Outcome) -> str:
        """Say how many rows were found, and which of them are wrong."""
        rows = outcome.row["rows"]
        found = len(rows)
        all_known = found <= self._shown
        count = plural(found, "row") if all_known else f"more than {self._shown} rows"
        if outcome.holds is None:
            return (
                f"The query returned {count}, and reads `{outcome.missing}`, which the instrumentation cannot record."
            )
        if outcome.holds:
            return f"The query returned {count}, exactly as expected." if found else "The query returned no row."
        if not self._expected:
            return f"The query returned {count}; there should be none: {_listed(rows, all_known=all_known)}."
        extra, absent = _differing(rows, [_plain(row) for row in self._expected])
        differences = {"not expected": extra, "expected and not found": absent}
        differs = "; ".join(f"{word}: {_listed(of, all_known=all_known)}" for word, of in differences.items() if of)
        return f"The query returned {count} where {len(self._expected)} were expected; {differs}."


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
        place = next((place for place, other in enumerate(left) if _same(row, other)), None)
        if place is None:
            extra.append(row)
        else:
            del left[place]
    return extra, left


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
