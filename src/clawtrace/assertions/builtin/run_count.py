"""`run_count`: how often a command was run."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.commands.commands import command_evidence, doubt, hits, listed, resolve_commands
from clawtrace.assertions.commands.other_tools import OTHER_TOOLS, not_known, resolve_other_tools
from clawtrace.assertions.forms.bounds import Natural, check_bounds, decide_sql, need_one_of, plural, words
from clawtrace.assertions.matching.matchers import RegexText
from clawtrace.model.query import Query, Resolve

__all__ = ["RunCount"]


class RunCount(Assertion):
    """The number of simple commands that match the regular expression lies within `min` and `max`.

    Simple commands are counted: `curl a && curl b` are two, `sudo curl a` and `sh -c 'curl a'` are one. A pattern that is
    found only in what carries simple commands (`cd x && make`, `^sudo`) counts once for the smallest such text. What a
    loop repeats is one command. Blocked commands did not run. A text that was not captured, redacted, or not split
    could hold any number of matches.

    Example:
        - type: run_count
          pattern: "^curl"
          min: 2
          max: 5
    """

    main_field = "pattern"
    requires = ("commands.text", "tool_calls.name")

    pattern: RegexText
    """Regular expression, found anywhere in the text of a simple command."""
    min: Natural | None = None
    """Fewest matching commands."""
    max: Natural | None = None
    """Most matching commands."""

    @model_validator(mode="after")
    def _check(self) -> RunCount:
        need_one_of(self, "min", "max")
        check_bounds(self.min, self.max)
        return self

    def resolve(self) -> tuple[Resolve, ...]:
        """Search each distinct command, and what other tools were given as one."""
        return (*resolve_commands(self.pattern), resolve_other_tools(self.pattern))

    def query(self) -> Query:
        """Natural the commands that match for sure, and those that may."""
        decided = "FALSE" if self.max is None else "g.low > :max"
        if self.max is None:
            decided = "g.low >= :min"
        # Of an open run two calls can still turn out to be one: a single command is decided by the first.
        first_decides = self.max == 0 or (self.max is None and self.min == 1)
        sure = "" if first_decides else f" AND NOT {still_open('g.run_id')}"
        return Query(
            f"""
SELECT g.run_id AS run_id, {decide_sql("g.low", "g.high", self.min, self.max)} AS holds,
       CASE WHEN {decided}{sure} THEN TRUE ELSE FALSE END AS final,
       CASE WHEN g.recordable = 0 THEN 'tool_calls' WHEN g.doubtful > 0 THEN g.doubt
            WHEN g.nameless > 0 THEN 'tool_calls.name' ELSE NULL END AS missing,
       g.low AS low, g.high AS high, g.text AS text, g.tool AS tool
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.recordable) AS recordable,
         count(CASE WHEN f.fit = 1 THEN 1 END) AS low, max(f.nameless) AS nameless,
         CASE WHEN max(f.recordable) = 0 OR max(f.nameless) = 1 OR max(f.open) = 1 THEN NULL
              ELSE count(CASE WHEN f.fit > 0 THEN 1 END) END AS high,
         count(CASE WHEN f.fit = 2 OR f.open = 1 THEN 1 END) AS doubtful,
         max(CASE WHEN f.fit = 2 OR f.open = 1 THEN f.doubt END) AS doubt,
         max(CASE WHEN f.place = 1 THEN f.text END) AS text, max(CASE WHEN f.place = 0 THEN f.text END) AS tool
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.tool_calls IS NULL THEN 0 ELSE 1 END AS recordable,
           0 AS fit, 0 AS open, NULL AS doubt, 0 AS nameless, 0 AS place, NULL AS text
    FROM run_totals AS t
    JOIN selected_runs AS q ON q.run_id = t.run_id
    UNION ALL
    SELECT x.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 0 AS fit, 0 AS open, NULL AS doubt, 1 AS nameless, 0 AS place,
           NULL AS text
    FROM tool_calls AS x
    JOIN selected_runs AS y ON y.run_id = x.run_id
    WHERE x.name IS NULL AND x.outcome NOT IN ('requested', 'unexecuted', 'blocked')
    UNION ALL
    SELECT z.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 0 AS fit, 1 AS open, 'commands.tool' AS doubt, 0 AS nameless,
           0 AS place, z.name AS text
    FROM ({OTHER_TOOLS}) AS z
    UNION ALL
    SELECT h.run_id AS run_id, 0 AS has_trace, 0 AS recordable, h.fit AS fit, h.open AS open, {doubt("h")} AS doubt, 0 AS nameless,
           row_number() OVER (PARTITION BY h.run_id ORDER BY h.fit, h.call_no, h.command_no) AS place, h.text AS text
    FROM ({hits(self.pattern)}
    ) AS h
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""",
            {name: bound for name, bound in (("min", self.min), ("max", self.max)) if bound is not None},
        )

    def evidence(self) -> Query:
        """Return the calls whose commands match first, then the others."""
        return Query(command_evidence(self.pattern))

    def expectation(self) -> Any:
        """Return the pattern and the bounds."""
        return {"pattern": self.pattern, "min": self.min, "max": self.max}

    def actual(self, outcome: Outcome) -> Any:
        """Return how many commands match, as an interval."""
        return {"matching": [outcome.row["low"], outcome.row["high"]]}

    def explain(self, outcome: Outcome) -> str:
        """Say how many commands match."""
        row = outcome.row
        low, high = row["low"], row["high"]
        found = plural(low, "command") if low == high else f"At least {plural(low, 'command')}"
        if high is not None and low != high:
            found = f"{low} to {plural(high, 'command')}"
        first = f", the first one {listed(row['text'])}" if low else ""
        other = f" {not_known(row['tool'])}" if outcome.holds is None and outcome.missing == "commands.tool" else ""
        return f"{found} matched {self.pattern!r}, expected {words(self.min, self.max)}{first}.{other}"
