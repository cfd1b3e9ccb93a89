"""Commands as a count: a row may stand for any number of them, and so does each gap, as one tool call can run many."""

from __future__ import annotations

from dataclasses import dataclass

from clawtrace.assertions.commands.commands import MATCH, hits, nameless_calls, resolve_commands
from clawtrace.assertions.commands.other_tools import other_tools, resolve_other_tools
from clawtrace.assertions.forms.bounds import all_sql
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.sources import EVERY_COMMAND, EVERY_TOOL_CALL, Source
from clawtrace.assertions.forms.where import Where
from clawtrace.model.query import Query

__all__ = ["RAN", "CommandCount", "command_source", "matching_commands"]

RAN = "CASE WHEN p.outcome = 'blocked' THEN FALSE ELSE TRUE END"
"""Of a gap: it may hold a command; a call that was blocked ran none."""


@dataclass(frozen=True)
class CommandCount(Count):
    """Rows ``r`` have ``most`` (1, or NULL for any number) and ``place``, by which the first of a run is shown."""

    decision: str = ""
    """SQL over ``g`` that answers from ``low…`` and ``high…``; empty: the bounds do."""
    first: tuple[str, ...] = ("text", "kind")
    """Columns of the first row that sentences read."""

    @property
    def fact(self) -> str:  # type: ignore[override]
        """The relation."""
        return "commands"

    def query(self) -> Query:
        """Return the count: one row a run."""
        found, sums, names = list[str](), list[str](), list[str]()
        for one in self.tallies:
            key, met = one.key, f"({one.where.sql})"
            sums.append(f"CAST(sum(CASE WHEN r.certain AND {met} THEN 1 ELSE 0 END) AS bigint) AS low{key}")
            sums.append(f"CAST(sum(CASE WHEN {met} = FALSE THEN 0 ELSE 1 END) AS bigint) AS high{key}")
            sums.append(f"max(CASE WHEN {met} = FALSE OR r.most IS NOT NULL THEN 0 ELSE 1 END) AS open{key}")
            found.append(f"coalesce(x.low{key}, 0) AS low{key}")
            found.append(
                f"CASE WHEN x.open{key} = 1 OR h.run_id IS NOT NULL THEN NULL ELSE coalesce(x.high{key}, 0) END AS high{key}"
            )
            names += [f"low{key}", f"high{key}"]
        sums += [f"max(CASE WHEN r.place = 1 THEN r.{name} END) AS {name}" for name in self.first]
        found += [f"x.{name} AS {name}" for name in self.first]
        return Query(
            f"""
SELECT g.run_id AS run_id, {self.decision or all_sql(self.decided())} AS holds,
       {", ".join(f"g.{name} AS {name}" for name in (*names, *self.first))}
FROM (
  SELECT t.run_id AS run_id, {", ".join(found)}
  FROM run_totals AS t
  JOIN selected_runs AS s ON s.run_id = t.run_id
  LEFT JOIN (
    SELECT r.run_id AS run_id, {", ".join(sums)}
    FROM {self._source.counted} AS r
    GROUP BY r.run_id
  ) AS x ON x.run_id = t.run_id
  LEFT JOIN (
    SELECT DISTINCT p.run_id AS run_id FROM gaps AS p WHERE {self._source.gaps} AND ({RAN})
  ) AS h ON h.run_id = t.run_id
) AS g
""",
            {name: value for one in self.tallies for name, value in one.params.items()},
        )

    def decided(self) -> list[str]:
        """SQL over ``g``: what has a bound must be within it."""
        return [one.decided for one in self.tallies if (one.min, one.max) != (None, None)]


def command_source(counted: str, rows: str = "") -> Source:
    """Return what is counted; it is named by its tool calls, whose doubts are its own."""
    return Source(counted, rows=rows, relation="tool_calls", hidden=("commands",))


def matching_commands(
    pattern: str, *, min: int | None = None, max: int | None = None, everywhere: bool = False, ok: bool = False
) -> CommandCount:  # fmt: skip
    """Return the count of commands in which a pattern is found.

    Args:
        pattern: the regular expression.
        min: fewest.
        max: most.
        everywhere: whether work that a timer started is looked at, too.
        ok: whether only commands count that succeeded.
    """
    calls, commands = (EVERY_TOOL_CALL, EVERY_COMMAND) if everywhere else ("tool_calls", "commands")
    match = f"CASE WHEN r.kind = {MATCH} THEN TRUE WHEN r.kind IS NULL THEN FALSE ELSE NULL END"
    if ok:
        match = f"CASE WHEN r.ok = FALSE OR r.kind IS NULL THEN FALSE WHEN r.kind = {MATCH} AND r.ok THEN TRUE ELSE NULL END"

    def rows(span: str, joined: str) -> str:
        columns = ("run_id", "call_no", "command_no", "text", "ok", "certain", "most", "kind")
        of_hit, of_other, of_nameless, of_any = (
            ", ".join(f"{at}.{name} AS {name}" for name in columns) for at in "hijx"
        )
        met = f"({match.replace('r.', 'x.')})"
        return f"""(
    SELECT {of_any}, x.span_id AS span_id, row_number() OVER (
             PARTITION BY x.run_id
             ORDER BY CASE WHEN {met} THEN CASE WHEN x.certain THEN 0 ELSE 1 END WHEN {met} = FALSE THEN 2 ELSE 1 END,
                      x.call_no, x.command_no) AS place
    FROM (
      SELECT {of_hit}, {span} AS span_id FROM ({hits(pattern, commands)}) AS h {joined}
      UNION ALL
      SELECT {of_other}, i.span_id AS span_id FROM ({other_tools(calls, commands)}) AS i
      UNION ALL
      SELECT {of_nameless}, j.span_id AS span_id FROM ({nameless_calls(calls)}) AS j
    ) AS x
    UNION ALL
    SELECT w.run_id AS run_id, w.tool_call_no AS call_no, 1 AS command_no, w.text AS text, w.ok AS ok, w.certain AS certain,
           1 AS most, CASE WHEN 1 = 0 THEN 0 END AS kind, CASE WHEN 1 = 0 THEN w.text END AS span_id, 0 AS place
    FROM {commands} AS w
    JOIN selected_runs AS q ON q.run_id = w.run_id
    WHERE w.command_no = 1
  )"""

    source = command_source(
        rows("CASE WHEN 1 = 0 THEN h.text END", ""),
        rows("k.span_id", f"JOIN {calls} AS k ON k.run_id = h.run_id AND k.call_no = h.call_no"),
    )
    resolve = (*resolve_commands(pattern, commands), resolve_other_tools(pattern, calls))
    asked = Where(match, RAN, ("name", "arguments", "outcome"), resolve)
    whole = Where("r.kind IS NULL", "FALSE")
    return CommandCount(
        source,
        (CountedRows(asked, min, max, "command"), CountedRows(whole, key="_ran", noun="command")),
        shown="coalesce(r.text, '(a command that was not captured)')",
    )
