"""Whether a command was run: one question that `ran` and `not_ran` ask from opposite sides."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.commands.commands import command_evidence, doubt, hits, listed, resolve_commands, why_unknown
from clawtrace.assertions.commands.other_tools import OTHER_TOOLS, not_known, resolve_other_tools
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.forms.sources import EVERY_COMMAND, EVERY_TOOL_CALL
from clawtrace.assertions.matching.matchers import RegexText
from clawtrace.model.query import Query, Resolve

__all__ = ["CommandPattern"]


class CommandPattern(Assertion):
    """Base of the assertions that ask whether a command was run."""

    main_field = "pattern"
    requires = ("commands.text", "tool_calls.name")

    pattern: RegexText
    """Regular expression, found anywhere in the text of a command or of a simple command in it; `^` asks for its program."""

    def resolve(self) -> tuple[Resolve, ...]:
        """Search each distinct command, and what other tools were given as one."""
        return (*resolve_commands(self.pattern, EVERY_COMMAND), resolve_other_tools(self.pattern))

    def search(self, *, found: bool, ok: bool = False) -> Query:
        """Return the query; `found` is what holds when a command matches, with `ok` one that succeeded."""
        met = "h.fit = 1 AND h.ok = TRUE" if ok else "h.fit = 1"
        unmet = "h.ok = FALSE" if ok else "1 = 0"
        # A match whose success is unknown lacks that; one that may match lacks some of its text.
        unknown = f"CASE WHEN h.fit = 1 THEN 'commands.ok' ELSE {doubt('h')} END"
        return Query(f"""
SELECT g.run_id AS run_id, FALSE AS final,
       CASE WHEN g.met > 0 THEN {found} WHEN g.recordable = 0 OR g.nameless > 0 OR g.doubtful > 0 THEN NULL
            ELSE {not found} END AS holds,
       CASE WHEN g.met > 0 THEN NULL WHEN g.recordable = 0 THEN 'tool_calls' WHEN g.doubtful > 0 THEN g.unknown
            WHEN g.nameless > 0 THEN 'tool_calls.name' ELSE NULL END AS missing,
       g.met AS met, g.failed AS failed, g.commands AS commands, g.nameless AS nameless, g.text AS text, g.tool AS tool
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.recordable) AS recordable,
         count(CASE WHEN f.hit = 1 THEN 1 END) AS met, count(CASE WHEN f.hit = 2 THEN 1 END) AS doubtful,
         count(CASE WHEN f.hit = 0 THEN 1 END) AS failed, max(f.unknown) AS unknown,
         count(CASE WHEN f.command = 1 THEN 1 END) AS commands, count(CASE WHEN f.nameless = 1 THEN 1 END) AS nameless,
         max(CASE WHEN f.place = 1 THEN f.text END) AS text, max(CASE WHEN f.place = 0 THEN f.text END) AS tool
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.tool_calls IS NULL THEN 0 ELSE 1 END AS recordable,
           3 AS hit, NULL AS unknown, 0 AS command, 0 AS nameless, 0 AS place, NULL AS text
    FROM run_totals AS t
    JOIN selected_runs AS q ON q.run_id = t.run_id
    UNION ALL
    SELECT w.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 3 AS hit, NULL AS unknown, 1 AS command, 0 AS nameless,
           0 AS place, NULL AS text
    FROM {EVERY_COMMAND} AS w
    JOIN selected_runs AS p ON p.run_id = w.run_id
    WHERE w.command_no = 1
    UNION ALL
    SELECT x.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 3 AS hit, NULL AS unknown, 0 AS command, 1 AS nameless,
           0 AS place, NULL AS text
    FROM {EVERY_TOOL_CALL} AS x
    JOIN selected_runs AS y ON y.run_id = x.run_id
    WHERE x.name IS NULL AND x.outcome NOT IN ('requested', 'unexecuted', 'blocked')
    UNION ALL
    SELECT z.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 2 AS hit, 'commands.tool' AS unknown, 0 AS command, 0 AS nameless,
           0 AS place, z.name AS text
    FROM ({OTHER_TOOLS}) AS z
    UNION ALL
    SELECT j.run_id AS run_id, 0 AS has_trace, 0 AS recordable, j.hit AS hit,
           CASE WHEN j.hit = 2 THEN j.unknown END AS unknown, 0 AS command, 0 AS nameless,
           row_number() OVER (
             PARTITION BY j.run_id ORDER BY CASE j.hit WHEN 1 THEN 0 WHEN 2 THEN 1 ELSE 2 END, j.call_no, j.command_no)
             AS place,
           j.text AS text
    FROM (
      SELECT h.run_id AS run_id, h.call_no AS call_no, h.command_no AS command_no, h.text AS text,
             {unknown} AS unknown, CASE WHEN {met} THEN 1 WHEN {unmet} THEN 0 ELSE 2 END AS hit
      FROM ({hits(self.pattern, EVERY_COMMAND)}
      ) AS h
    ) AS j
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""")

    def evidence(self) -> Query:
        """Return the calls whose commands match first, then the others."""
        return Query(command_evidence(self.pattern, everywhere=True))

    def actual(self, outcome: Outcome) -> Any:
        """Return how many commands match, how many calls of a shell there were, and the first match."""
        row = outcome.row
        return {"matching": row["met"], "commands": row["commands"], "first": row["text"]}

    def unknown_words(self, outcome: Outcome) -> str:
        """Say why it is unknown."""
        row, recorded = outcome.row, plural(outcome.row["commands"], "command")
        if outcome.missing == "tool_calls":
            return f"Whether a command matches {self.pattern!r} is unknown: tool calls were not recorded."
        if outcome.missing == "tool_calls.name":
            nameless = plural(row["nameless"], "tool call")
            return f"Whether a command matches {self.pattern!r} is unknown: {nameless} without a name may have been a shell's."
        if outcome.missing == "commands.tool":
            return f"Whether a command matches {self.pattern!r} is unknown: {not_known(row['tool'])}"
        if outcome.missing == "commands.ok":
            return f"{listed(row['text'])} matches {self.pattern!r}; whether it succeeded is unknown."
        return f"Whether one of {recorded} matches {self.pattern!r} is unknown: {listed(row['text'])} may{why_unknown(outcome.missing)}."

    def recorded_words(self, outcome: Outcome) -> str:
        """Say what ran."""
        count = outcome.row["commands"]
        return f"{plural(count, 'command')} ran" if count else "no command was run"
