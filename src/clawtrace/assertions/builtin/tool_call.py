"""`tool_call`: a tool was called with certain arguments, outcome, result or by a certain agent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import Bounds, Counted, check_bounds, interval, number_or_bounds, words
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.sources import ATTEMPT, SOURCES, rows_evidence
from clawtrace.assertions.forms.where import AGENT_NAMES, Where, among, both, equal, name_is
from clawtrace.assertions.matching.arguments import ArgumentMode, ArgumentPath, Arguments, match_arguments
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.matching.redacted import contains, holds_mark
from clawtrace.assertions.refused import refused
from clawtrace.model.query import Query, Resolve

__all__ = ["ToolCall"]

_LONGEST = 120
"""Characters of the arguments that the message repeats."""
_CALLED_BY = """CASE WHEN coalesce(r.agents, 0) = 0 OR r.why IS NOT NULL THEN NULL WHEN r.fits = 1 THEN TRUE
              WHEN r.nameless = 1 THEN NULL ELSE FALSE END"""
_WITH_AGENTS = """(
      SELECT c.run_id AS run_id, c.call_no AS call_no, c.span_id AS span_id, c.name AS name, c.arguments AS arguments,
             c.result AS result, c.outcome AS outcome, c.agent_span_id AS agent_span_id, c.certain AS certain, w.agents AS agents,
             w.fits AS fits, w.nameless AS nameless, w.why AS why
      FROM tool_calls AS c
      LEFT JOIN (
        SELECT a.run_id AS run_id, a.span_id AS span_id, count(*) AS agents,
               max(CASE WHEN a.name IN (SELECT v.value FROM asked_agent AS v) THEN 1 ELSE 0 END) AS fits,
               max(CASE WHEN a.name IS NULL THEN 1 ELSE 0 END) AS nameless,
               max(d.reason) AS why
        FROM agents AS a
        LEFT JOIN (
          SELECT b.run_id AS run_id, b.row_no AS row_no, b.reason AS reason FROM doubts AS b
          WHERE b.relation = 'agents' AND b.column_name IS NULL AND b.reason NOT IN ('agent-inside-itself', 'missing_parent')
        ) AS d ON d.run_id = a.run_id AND d.row_no = a.activation_no
        WHERE a.span_id IS NOT NULL
        GROUP BY a.run_id, a.span_id
      ) AS w ON w.run_id = c.run_id AND w.span_id = c.agent_span_id
    )"""
_WHY = "CASE WHEN coalesce(r.agents, 0) = 0 THEN 'scope-unknown' WHEN r.nameless = 1 THEN 'name-not-recorded' ELSE r.why END"
_RESULT = " || ', result ' || coalesce(r.result, 'not captured')"
_ARGUMENTS = " || ', arguments ' || coalesce(r.arguments, 'not captured')"


def _read(column: str, bound: str) -> str:
    """SQL: a text is as asked; NULL where it was not captured, or was cut off or redacted where it matters."""
    return f"CASE WHEN r.{column} IN (SELECT m.value FROM {bound} AS m WHERE m.item = 1) THEN NULL ELSE ({among(f'r.{column}', bound)}) END"


@dataclass(frozen=True)
class _MatchingCalls(Count):
    """The calls as described, and all calls of the tool; evidence goes on with the others: they show what was done instead."""

    def evidence(self) -> Query:
        """Return the calls that are as described, those that may be, and the others."""
        asked, named = (one.where for one in self.tallies)
        found = rows_evidence(self._source, [asked], self.shown, "", asked.params)
        return found._replace(
            sql=f"""
SELECT z.run_id AS run_id, z.span_id AS span_id, z.why AS why, z.reason AS reason,
       row_number() OVER (PARTITION BY z.run_id ORDER BY z.other, z.rank) AS rank
FROM (
  SELECT i.run_id AS run_id, i.span_id AS span_id, i.why AS why, i.reason AS reason, CAST(i.rank AS bigint) AS rank, 0 AS other
  FROM ({found.sql}) AS i
  UNION ALL
  SELECT r.run_id AS run_id, r.span_id AS span_id, {self.shown} AS why, NULL AS reason, r.call_no AS rank, 1 AS other
  FROM {self._source.counted} AS r
  JOIN selected_runs AS o ON o.run_id = r.run_id
  WHERE ({named.sql}) AND ({asked.sql}) = FALSE
) AS z
"""
        )

    def actual(self, row: Row) -> Any:
        """Return how many calls are as described, as an interval, and how many calls of the tool there are for sure."""
        return {"matching": number_or_bounds(row["low"], row["high"]), "calls": row["low_named"]}

    def sentence(self, outcome: Outcome) -> str:
        """Return how many calls were as described, of how many of the tool."""
        row, (described, named) = outcome.row, self.tallies
        low, high, calls = row["low"], row["high"], interval(row["low_named"], row["high_named"], "call")
        expected = f"{described.of}, expected {words(described.min, described.max)}.{self.asked_words(row)}"
        if row["high_named"] == 0:
            return f"{named.of} was never called{expected}"
        if not row["high_named"] and not row["low_named"]:
            return f"Whether {named.of} was called is unknown: no call of it is recorded for sure{expected}"
        found = f"{low}" if low == high else f"At least {low}" if high is None else f"{low} to {high}"
        return f"{found} of {calls} of {named.of}{expected}"


class ToolCall(Assertion):
    """The tool was called as described: with these arguments, this outcome, this result, by this agent.

    That a tool ran says little when it ran on the wrong file. All that is given must hold of one call; `count` says how
    many such calls are right (by default at least one). Executed, failed and blocked calls are looked at, requests that
    nothing carried out are not. Where arguments, outcome, result or agent were not captured, such a call counts as possible.

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
    args: Arguments | None = None
    """Expected arguments by name: literals, `re:`, `glob:`, `literal:`, comparisons such as `">=3"`, or `any`."""
    match: ArgumentMode = "subset"
    """`subset`: others are allowed; `partial`: others are, in objects inside of them as well; `exact`: no others;
    `superset`: no others, and given ones may be absent."""
    ignore: tuple[ArgumentPath, ...] = ()
    """JSONPaths left out of the comparison: `$.a.b`, `$['a']`, `$.list[0]`, `$.list[*]`, `$..name`."""
    count: Counted = Bounds(min=1)
    """The allowed number of such calls: a number, or `min`, `max` or both."""
    status: Literal["ok", "error", "blocked"] | None = None
    """The required outcome of the call."""
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
        return self.args is not None and (bool(self.args) or self.match not in ("subset", "partial"))

    def _arguments(self, recorded: str) -> tuple[int, ...]:
        answer = match_arguments(self.args or {}, recorded, self.match, self.ignore)
        return () if answer is False else (0,) if answer else (1,)

    def _result(self, recorded: str) -> tuple[int, ...]:
        if self.result_contains is not None and contains(recorded, self.result_contains):
            return (0,)
        return (1,) if holds_mark(recorded) else ()

    def question(self) -> _MatchingCalls:
        """Count the calls that are as described."""
        named = name_is(self.tool)
        narrowed = f"({named.sql}) IS NULL OR ({named.sql})"
        asked = [named]
        if self._asks_arguments:
            read = Resolve("asked_arguments", "tool_calls", "arguments", self._arguments, narrowed)
            asked.append(Where(_read("arguments", read.name), columns=("arguments",), resolve=(read,)))
        if self.status is not None:
            asked.append(equal("outcome", self.status, of_gap=True))
        if self.result_contains is not None:
            read = Resolve("asked_result", "tool_calls", "result", self._result, narrowed)
            asked.append(Where(_read("result", read.name), columns=("result",), resolve=(read,)))
        if self.by_agent is not None:
            agents = Resolve("asked_agent", AGENT_NAMES, "name", self.by_agent.items, names=self.by_agent.names)
            asked.append(Where(_CALLED_BY, among("p.agent", "asked_agent"), ("agent_span_id",), (agents,)))
        source = SOURCES["tool_calls"]._replace(counted=_WITH_AGENTS, why=_WHY) if self.by_agent else "tool_calls"
        tallies = (
            CountedRows(both(*asked), self.count.min, self.count.max, of=self._described()),
            CountedRows(named, of=f"`{self.tool}`", key="_named"),
        )
        shown = f"{ATTEMPT}{_RESULT if self.result_contains is not None else ''}{_ARGUMENTS}"
        return _MatchingCalls(source, tallies, named=named, shown=shown)

    def expectation(self) -> Any:
        """Return the description and the count."""
        given = self.model_dump(mode="json", include={"tool", "args", "status", "result_contains", "by_agent", "count"})
        return {name: value for name, value in given.items() if value is not None}

    def _described(self) -> str:
        """Return what is expected of a call in addition to its name."""
        said = []
        if self._asks_arguments:
            written = json.dumps(self.args, ensure_ascii=False, default=str)
            said.append(f"arguments `{written if len(written) <= _LONGEST else written[: _LONGEST - 1] + '…'}`")
        if self.status is not None:
            said.append(f"outcome `{self.status}`")
        if self.result_contains is not None:
            said.append(f"{self.result_contains!r} in the result")
        by = f" by `{self.by_agent}`" if self.by_agent is not None else ""
        return by + (f" with {', '.join(said)}" if said else "")
