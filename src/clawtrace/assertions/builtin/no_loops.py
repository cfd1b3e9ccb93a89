"""`no_loops`: the agent did not do the same thing over and over."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import Field

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.matching.arguments import read_arguments
from clawtrace.model.query import Query

__all__ = ["NoLoops"]

Call = tuple[str | None, str | None]
"""Name and arguments in one form; None where unknown."""


class NoLoops(Assertion):
    """No tool is called more than `max_repeats` times in a row with the same arguments.

    An agent that repeats itself burns money without getting anywhere. In a row means without another call in between,
    among all calls of the run by start or among those of one agent. Executed, failed and blocked calls count. Arguments
    are compared as JSON values; where they were not captured or were cut off, calls of one tool may be the same. A call
    that arrives late can part a row, so that nothing is final before the trace is whole.

    Example:
        - type: no_loops
          max_repeats: 3
    """

    main_field = "max_repeats"
    requires = ("tool_calls.name", "tool_calls.arguments", "tool_calls.outcome")

    max_repeats: Annotated[int, Field(strict=True, ge=1)] = 3
    """Most calls in a row of one tool with the same arguments; 1 allows no repetition."""

    def query(self) -> Query:
        """Settle the runs in which no tool was called often enough; nameless calls may be any tool's."""
        return Query(
            """
SELECT g.run_id AS run_id, g.calls AS calls, g.recordable AS recordable, FALSE AS final,
       CASE WHEN g.recordable = 0 THEN NULL ELSE TRUE END AS holds,
       CASE WHEN g.recordable = 0 THEN 'tool_calls' ELSE NULL END AS missing,
       CASE WHEN g.most + g.nameless > :max_repeats THEN FALSE ELSE TRUE END AS settled
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.recordable) AS recordable,
         CAST(sum(f.n) AS bigint) AS calls, max(CASE WHEN f.nameless = 0 THEN f.n ELSE 0 END) AS most,
         max(CASE WHEN f.nameless = 1 THEN f.n ELSE 0 END) AS nameless
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.tool_calls IS NULL THEN 0 ELSE 1 END AS recordable,
           0 AS n, 0 AS nameless
    FROM run_totals AS t
    JOIN selected_runs AS s ON s.run_id = t.run_id
    UNION ALL
    SELECT c.run_id AS run_id, 0 AS has_trace, 0 AS recordable, count(*) AS n,
           CASE WHEN c.name IS NULL THEN 1 ELSE 0 END AS nameless
    FROM tool_calls AS c
    JOIN selected_runs AS q ON q.run_id = c.run_id
    WHERE c.outcome NOT IN ('requested', 'unexecuted')
    GROUP BY c.run_id, c.name
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""",
            {"max_repeats": self.max_repeats},
        )

    def details(self) -> Query:
        """Return the calls of the runs in which something may have been repeated, by start."""
        return Query("""
SELECT c.run_id AS run_id, c.call_no AS call_no, c.name AS name, c.arguments AS arguments,
       c.agent_span_id AS agent_span_id
FROM tool_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
WHERE c.outcome NOT IN ('requested', 'unexecuted')
ORDER BY run_id, call_no
""")

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Find the longest row for sure, and the longest there may be."""
        forms: dict[str, str | None] = {}
        calls = [_call(detail, forms) for detail in details]
        agents: dict[Any, list[Call]] = {}
        for call, detail in zip(calls, details, strict=True):
            agents.setdefault(detail["agent_span_id"], []).append(call)
        rows = [calls, *agents.values()]
        sure, what = max((_longest_for_sure(some) for some in rows), key=lambda found: found[0])
        possible = max(_longest_possible(some) for some in rows)
        found = {**row, "longest": sure, "possible": possible, "repeated": what}
        if sure > self.max_repeats:
            return Outcome(row["run_id"], False, False, "", found)
        if possible > self.max_repeats:
            nameless = any(name is None for name, _ in calls)
            return Outcome(row["run_id"], None, False, f"tool_calls.{'name' if nameless else 'arguments'}", found)
        holds = True if row["recordable"] else None
        return Outcome(row["run_id"], holds, False, "" if holds else "tool_calls", found)

    def evidence(self) -> Query:
        """Return the calls, those that were recorded most often with the same arguments first."""
        return Query("""
SELECT g.run_id AS run_id, g.span_id AS span_id,
       'call ' || g.call_no || ': ' || coalesce(g.name, '(tool without a name)') || ', arguments '
         || coalesce(g.arguments, 'not captured') AS why,
       row_number() OVER (PARTITION BY g.run_id ORDER BY g.same DESC, g.call_no) AS rank
FROM (
  SELECT c.run_id AS run_id, c.span_id AS span_id, c.call_no AS call_no, c.name AS name, c.arguments AS arguments,
         count(*) OVER (PARTITION BY c.run_id, c.name, c.arguments) AS same
  FROM tool_calls AS c
  JOIN selected_runs AS s ON s.run_id = c.run_id
  WHERE c.outcome NOT IN ('requested', 'unexecuted')
) AS g
""")

    def actual(self, outcome: Outcome) -> Any:
        """Return the longest row for sure, the longest there may be, and the tool; None when none is long enough."""
        row = outcome.row
        if "longest" not in row:
            return None
        return {"longest": row["longest"], "possible": row["possible"], "tool": row["repeated"][0]}

    def explain(self, outcome: Outcome) -> str:
        """Say the longest row."""
        row = outcome.row
        asked = f"at most {self.max_repeats} allowed"
        if outcome.holds is False:
            name, arguments = row["repeated"]
            short = arguments if len(arguments) <= 100 else arguments[:99] + "…"
            return f"`{name}` was called {row['longest']} times in a row with the arguments {short}, {asked}."
        if outcome.holds:
            return f"No tool was called more than {plural(self.max_repeats, 'time')} in a row with the same arguments."
        if row.get("possible", 0) > self.max_repeats:
            return (
                f"Up to {row['possible']} calls in a row may be the same, {asked}: "
                f"not every {'name' if outcome.missing == 'tool_calls.name' else 'argument'} is known."
            )
        return f"Whether calls were repeated cannot be known, {asked}."


def _call(detail: Row, forms: dict[str, str | None]) -> Call:
    recorded = detail["arguments"]
    if recorded is None:
        return detail["name"], None
    if recorded not in forms:
        forms[recorded] = _one_form(recorded)
    return detail["name"], forms[recorded]


def _one_form(recorded: str) -> str | None:
    """Return arguments as canonical JSON; None when they were cut off."""
    try:
        return json.dumps(read_arguments(recorded), sort_keys=True, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _longest_for_sure(calls: Iterable[Call]) -> tuple[int, Call]:
    """Return the length of the longest row of calls that are known and equal, and its call."""
    best: tuple[int, Call] = (0, (None, None))
    length, before = 0, None
    for call in calls:
        known = call[0] is not None and call[1] is not None
        length = (length + 1 if call == before else 1) if known else 0
        before = call if known else None
        if length > best[0]:
            best = (length, call)
    return best


def _longest_possible(calls: Sequence[Call]) -> int:
    """Return the length of the longest row of calls of which no two are known to differ."""
    first, best = 0, 0
    names: Counter[str | None] = Counter()
    arguments: Counter[str | None] = Counter()
    for place, (name, given) in enumerate(calls):
        names[name] += 1
        arguments[given] += 1
        while _distinct(names) > 1 or _distinct(arguments) > 1:
            names[calls[first][0]] -= 1
            arguments[calls[first][1]] -= 1
            first += 1
        best = max(best, place - first + 1)
    return best


def _distinct(counted: Counter[str | None]) -> int:
    """Return how many different known values are counted; a value counted down to nothing is dropped."""
    for value in [value for value, count in counted.items() if not count]:
        del counted[value]
    return len(counted) - (None in counted)
