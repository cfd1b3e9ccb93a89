"""`tool_call`: a tool was called with certain arguments, outcome, result or by a certain agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import Bounds, Counted, check_bounds, decide_sql, plural, words
from clawtrace.assertions.matching.arguments import ArgumentMode, check_arguments, check_path, match_arguments
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.matching.redacted import holds_mark
from clawtrace.assertions.matching.result_text import contains
from clawtrace.assertions.refused import refused
from clawtrace.model.query import Query, Resolve

__all__ = ["ToolCall"]

_SHOWN = 120
"""Characters of the arguments that the message repeats."""
_UNREAD = "the text that was recorded"
_NAMED = "c.name IN (SELECT m.value FROM asked_tool AS m)"
# What each further condition says of a call: 1 it is met, 0 it is not, 2 it was not recorded, 3 what was recorded of it
# cannot be read: it was cut off or redacted.
_ARGUMENTS = """CASE WHEN c.arguments IS NULL THEN 2
              WHEN c.arguments IN (SELECT x.value FROM asked_arguments AS x WHERE x.item = 0) THEN 1
              WHEN c.arguments IN (SELECT y.value FROM asked_arguments AS y WHERE y.item = 1) THEN 3 ELSE 0 END"""
_STATUS = "CASE WHEN c.outcome = :status THEN 1 WHEN c.outcome = 'unknown' THEN 2 ELSE 0 END"
_RESULT = """CASE WHEN c.result IS NULL THEN 2
              WHEN c.result IN (SELECT z.value FROM asked_result AS z WHERE z.item = 0) THEN 1
              WHEN c.result IN (SELECT u.value FROM asked_result AS u WHERE u.item = 1) THEN 3 ELSE 0 END"""
_AGENT = "CASE WHEN coalesce(w.known, 0) = 0 THEN 2 WHEN w.fits = 1 THEN 1 WHEN w.nameless = 1 THEN 2 ELSE 0 END"
_AGENTS = """LEFT JOIN (
    SELECT a.run_id AS run_id, a.span_id AS span_id, 1 AS known,
           max(CASE WHEN a.name IN (SELECT v.value FROM asked_agent AS v) THEN 1 ELSE 0 END) AS fits,
           max(CASE WHEN a.name IS NULL THEN 1 ELSE 0 END) AS nameless
    FROM agents AS a WHERE a.span_id IS NOT NULL
    GROUP BY a.run_id, a.span_id
  ) AS w ON w.run_id = c.run_id AND w.span_id = c.agent_span_id"""


class ToolCall(Assertion):
    """The tool was called as described: with these arguments, this outcome, this result, by this agent.

    That a tool ran says little when it ran on the wrong file. All that is given must hold of one call; `count` says how
    many such calls are right (by default at least one). Executed, failed and blocked calls are looked at, calls that
    nothing executed are not. Where arguments, outcome, result or agent were not captured, such a call counts as possible.

    Example:
        - type: tool_call
          tool: write_file
          args: {path: "glob:/workspace/*.md", overwrite: any}
          ignore: ["$.overwrite"]
          status: ok
          count: {min: 1, max: 3}
    """


    requires = ("tool_calls.name", "tool_calls.arguments", "tool_calls.outcome")

    tool: Matcher
    """Name of the tool, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""
    args: Annotated[dict[str, Any], AfterValidator(check_arguments)] | None = None
    """Expected arguments by name: literals, `re:`, `glob:`, `literal:`, comparisons such as `">=3"`, or `any`."""
    match: ArgumentMode = "subset"
    """`subset`: others are allowed; `exact`: no others; `superset`: no others, and given ones may be absent."""
    ignore: tuple[Annotated[str, AfterValidator(check_path)], ...] = ()
    """JSONPaths left out of the comparison: `$.a.b`, `$['a']`, `$.list[0]`, `$.list[*]`, `$..name`."""
    count: Counted = Bounds(min=1)
    """How many such calls are right: a number, or `min`, `max` or both."""
    status: Literal["ok", "error", "blocked"] | None = None
    """How the call ended."""
    result_contains: Annotated[str, Field(min_length=1)] | None = None
    """Text that the result contains, case-sensitively."""
    by_agent: Matcher | None = None
    """Name of the agent that made the call itself (not through another agent)."""

    @model_validator(mode="after")
    def _check(self) -> ToolCall:
        for name in ("match", "ignore"):
            if name in self.model_fields_set and self.args is None:
                raise refused(f"`{name}` says how to compare `args`, which are not given", name)
        check_bounds(self.count.min, self.count.max, field="count")
        return self

    @property
    def _asks_arguments(self) -> bool:
        return self.args is not None and (bool(self.args) or self.match != "subset")

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide names, arguments, results and agents once per distinct value."""
        asked = [Resolve("asked_tool", "run_tools", "name", self.tool.items, names=self.tool.names)]
        narrowed = "r.name IS NULL OR r.name IN (SELECT m.value FROM asked_tool AS m)"
        if self._asks_arguments:
            asked.append(Resolve("asked_arguments", "tool_calls", "arguments", self._arguments, narrowed))
        if self.result_contains is not None:
            asked.append(Resolve("asked_result", "tool_calls", "result", self._result, narrowed))
        if self.by_agent is not None:
            asked.append(Resolve("asked_agent", "agents", "name", self.by_agent.items, names=self.by_agent.names))
        return tuple(asked)

    def _arguments(self, recorded: str) -> tuple[int, ...]:
        answer = match_arguments(self.args or {}, recorded, self.match, self.ignore)
        return () if answer is False else (0,) if answer else (1,)

    def _result(self, recorded: str) -> tuple[int, ...]:
        if self.result_contains is not None and contains(recorded, self.result_contains):
            return (0,)
        return (1,) if holds_mark(recorded) else ()

    @property
    def _conditions(self) -> dict[str, str]:
        """The fact that each further condition needs, and its SQL."""
        given = {
            "tool_calls.arguments": _ARGUMENTS if self._asks_arguments else "",
            "tool_calls.outcome": _STATUS if self.status else "",
            "tool_calls.result": _RESULT if self.result_contains is not None else "",
            "tool_calls.agent_span_id": _AGENT if self.by_agent else "",
        }
        return {fact: sql for fact, sql in given.items() if sql}

    def _judged(self) -> str:
        """SQL of one row a call: 1 it is as described, 0 it is not, 2 it may be; and the fact that is unknown."""
        columns = {fact: f"fact_{number}" for number, fact in enumerate(self._conditions)}
        facts = "".join(f",\n         {sql} AS {columns[fact]}" for fact, sql in self._conditions.items())
        unmet = "".join(f" WHEN j.{column} = 0 THEN 0" for column in columns.values())
        unknown = "".join(f" OR j.{column} >= 2" for column in columns.values())
        missing = "".join(
            f" WHEN j.{column} = 2 THEN '{fact}' WHEN j.{column} = 3 THEN '{_UNREAD}'"
            for fact, column in columns.items()
        )
        return f"""
  SELECT j.run_id AS run_id, j.call_no AS call_no,
         CASE WHEN 1 = 0 THEN 0{unmet} WHEN j.nameless = 1{unknown} THEN 2 ELSE 1 END AS fit,
         CASE WHEN j.nameless = 1 THEN 'tool_calls.name'{missing} ELSE NULL END AS unknown
  FROM (
  SELECT c.run_id AS run_id, c.call_no AS call_no, CASE WHEN c.name IS NULL THEN 1 ELSE 0 END AS nameless{facts}
  FROM tool_calls AS c
  JOIN selected_runs AS s ON s.run_id = c.run_id
  {_AGENTS if self.by_agent else ""}
  WHERE c.outcome NOT IN ('requested', 'unexecuted') AND (c.name IS NULL OR {_NAMED})
  ) AS j"""

    @property
    def _params(self) -> dict[str, str | int]:
        given = {"status": self.status, "min": self.count.min, "max": self.count.max}
        return {name: value for name, value in given.items() if value is not None}

    def query(self) -> Query:
        """Count the calls that are as described for sure, and those that may be."""
        minimum, maximum = self.count.min, self.count.max
        final = "FALSE"
        # A layer that arrives late can turn an ok call into a failed one, and two calls into one, which still is one.
        if self.status != "ok":
            decided = "g.low >= :min" if maximum is None else "g.low > :max"
            first_decides = maximum == 0 or (maximum is None and minimum == 1)
            sure = "" if first_decides else f" AND NOT {still_open('g.run_id')}"
            final = f"CASE WHEN {decided}{sure} THEN TRUE ELSE FALSE END"
        return Query(
            f"""
SELECT g.run_id AS run_id, {decide_sql("g.low", "g.high", minimum, maximum)} AS holds, {final} AS final,
       CASE WHEN g.recordable = 0 THEN 'tool_calls' ELSE g.unknown END AS missing,
       CASE WHEN g.calls = 0 AND {has_handoff("g.run_id")} THEN FALSE ELSE TRUE END AS settled,
       g.low AS low, g.high AS high, g.calls AS calls
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.recordable) AS recordable, 
         count(CASE WHEN f.fit = 1 THEN 1 END) AS low,
         CASE WHEN max(f.recordable) = 0 THEN NULL ELSE count(CASE WHEN f.fit > 0 THEN 1 END) END AS high,
         max(CASE WHEN f.fit = 2 THEN f.unknown END) AS unknown, count(f.fit) AS calls
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.tool_calls IS NULL THEN 0 ELSE 1 END AS recordable,
           NULL AS fit, NULL AS unknown
    FROM run_totals AS t
    JOIN selected_runs AS q ON q.run_id = t.run_id
    UNION ALL
    SELECT h.run_id AS run_id, 0 AS has_trace, 0 AS recordable, h.fit AS fit, h.unknown AS unknown
    FROM ({self._judged()}
    ) AS h
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""",
            self._params,
        )

    def details(self) -> Query:
        """Return the names of tools that only handed over to another agent."""
        return Query(HANDED_OVER)

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Keep the answer, and note the handoff that was meant."""
        return handed_over(self.outcome(row), details, self.tool)

    def evidence(self) -> Query:
        """Return the calls of the tool: those as described first, then those that may be, then the others."""
        return Query(
            f"""
SELECT k.run_id AS run_id, k.span_id AS span_id,
       coalesce(k.name, '(tool without a name)') || ': ' || k.outcome || ', arguments '
         || coalesce(k.arguments, 'not captured') AS why,
       row_number() OVER (
         PARTITION BY k.run_id ORDER BY CASE WHEN h.fit = 1 THEN 0 WHEN h.fit = 2 THEN 1 ELSE 2 END, k.call_no) AS rank
FROM tool_calls AS k
JOIN ({self._judged()}
) AS h ON h.run_id = k.run_id AND h.call_no = k.call_no
""",
            {"status": self.status} if self.status else {},
        )

    def expectation(self) -> Any:
        """Return the description and the count."""
        given = self.model_dump(mode="json", include={"tool", "args", "status", "result_contains", "by_agent", "count"})
        return {name: value for name, value in given.items() if value is not None}

    def actual(self, outcome: Outcome) -> Any:
        """Return how many calls are as described, as an interval, and how many calls of the tool there were."""
        return {"matching": [outcome.row["low"], outcome.row["high"]], "calls": outcome.row["calls"]}

    def explain(self, outcome: Outcome) -> str:
        """Say how many calls were as described."""
        row = outcome.row
        low, high, calls = row["low"], row["high"], plural(row["calls"], "call")
        expected = words(self.count.min, self.count.max)
        if high == 0 and not row["calls"]:
            noun = "call" if expected.endswith(" 1") else "calls"
            return f"`{self.tool}` was never called, expected {expected} {noun}{self._described()}.{handoff_words(outcome)}"
        if high is None and not row["calls"]:
            return f"Whether `{self.tool}` was called{self._described()} is unknown: no call of it was recorded, expected {expected}."
        found = f"{low}" if low == high else f"At least {low}" if high is None else f"{low} to {high}"
        return f"{found} of {calls} of `{self.tool}`{self._described()}, expected {expected}.{handoff_words(outcome)}"

    def _described(self) -> str:
        """Say what is expected of a call in addition to its name."""
        said = []
        if self._asks_arguments:
            written = json.dumps(self.args, ensure_ascii=False, default=str)
            said.append(f"arguments {written if len(written) <= _SHOWN else written[: _SHOWN - 1] + '…'}")
        if self.status is not None:
            said.append(f"outcome `{self.status}`")
        if self.result_contains is not None:
            said.append(f"{self.result_contains!r} in the result")
        by = f" by `{self.by_agent}`" if self.by_agent is not None else ""
        return by + (f" with {', '.join(said)}" if said else "")
