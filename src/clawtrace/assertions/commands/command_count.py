"""Commands as a count: a row may stand for any number of them, and so does each gap, as one tool call can run many.

`ran` and `not_ran` ask one question from opposite sides, whether a command was run (`CommandPattern`).
"""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.commands.commands import (
    MATCH,
    hits,
    listed,
    may_be,
    other_calls,
    resolve_commands,
    resolve_other_tools,
)
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.form import Row
from clawtrace.assertions.forms.sources import EVERY_COMMAND, EVERY_TOOL_CALL, Source
from clawtrace.assertions.forms.where import Where
from clawtrace.assertions.matching.matchers import RegexText

__all__ = ["FIRST", "RAN", "CommandPattern", "command_count", "matching_commands", "open_words"]

RAN = "CASE WHEN p.outcome = 'blocked' THEN FALSE ELSE TRUE END"
"""Of a gap: it may hold a command; a call that was blocked ran none."""


FIRST = ("text", "kind")
"""Columns of the row whose ``place`` is 1, the first of a run, which sentences read."""


def command_count(
    counted: str, tallies: tuple[CountedRows, ...], rows: str = "", first: tuple[str, ...] = FIRST, **more: Any
) -> Count:
    """Return a count of commands, named by their tool calls, whose doubts are their own.

    Args:
        counted: SQL of rows that have ``most`` (1, or NULL for any number) and ``place``.
        tallies: the numbers that are asked for.
        rows: what evidence reads, where that is something else.
        first: columns of the row whose place is 1.
        more: what `Count` takes besides.
    """
    source = Source(counted, high="r.most", endless=True, rows=rows, hidden=("commands",), fact="commands")
    return Count(source, tallies, greatest={name: f"CASE WHEN r.place = 1 THEN r.{name} END" for name in first}, **more)


def matching_commands(
    pattern: str, *, min: int | None = None, max: int | None = None, everywhere: bool = False, ok: bool = False
) -> Count:  # fmt: skip
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
        of_hit, of_other, of_any = (", ".join(f"{at}.{name} AS {name}" for name in columns) for at in "hix")
        met = f"({match.replace('r.', 'x.')})"
        return f"""(
    SELECT {of_any}, x.span_id AS span_id, row_number() OVER (
             PARTITION BY x.run_id
             ORDER BY CASE WHEN {met} THEN CASE WHEN x.certain THEN 0 ELSE 1 END WHEN {met} = FALSE THEN 2 ELSE 1 END,
                      x.call_no, x.command_no) AS place
    FROM (
      SELECT {of_hit}, {span} AS span_id FROM ({hits(pattern, commands)}) AS h {joined}
      UNION ALL
      SELECT {of_other}, i.span_id AS span_id FROM ({other_calls(calls, commands)}) AS i
    ) AS x
    UNION ALL
    SELECT w.run_id AS run_id, w.tool_call_no AS call_no, 1 AS command_no, w.text AS text, w.ok AS ok, w.certain AS certain,
           1 AS most, CASE WHEN 1 = 0 THEN 0 END AS kind, CASE WHEN 1 = 0 THEN w.text END AS span_id, 0 AS place
    FROM {commands} AS w
    JOIN selected_runs AS q ON q.run_id = w.run_id
    WHERE w.command_no = 1
  )"""

    resolve = (*resolve_commands(pattern, commands), resolve_other_tools(pattern, calls))
    asked = Where(match, RAN, ("name", "arguments", "outcome"), resolve)
    whole = Where("r.kind IS NULL", "FALSE")
    return command_count(
        rows("CASE WHEN 1 = 0 THEN h.text END", ""),
        (CountedRows(asked, min, max, "command"), CountedRows(whole, key="_ran", noun="command")),
        rows("k.span_id", f"JOIN {calls} AS k ON k.run_id = h.run_id AND k.call_no = h.call_no"),
        shown="coalesce(r.text, '(a command that was not captured)')",
    )


class CommandPattern(Assertion):
    """Base of the assertions that ask whether a command was run."""

    main_field = "pattern"
    requires = ("commands.text", "tool_calls.name")

    pattern: RegexText
    """Regular expression, found anywhere in the text of a command or of a simple command in it; `^` asks for its program."""

    def actual(self, outcome: Outcome) -> Any:
        """Return how many commands match, how many calls of a shell there were, and the first match."""
        row = outcome.row
        return {"matching": row["low"], "commands": row["low_ran"], "first": row["text"]}

    def explain(self, outcome: Outcome) -> str:
        """Return which command matches, or may."""
        row = outcome.row
        if outcome.holds is None:
            which = f"one of {row['low_ran']} commands" if row["low_ran"] > 1 else "a command"
            return f"Whether {which} matches `{self.pattern}` is unknown{open_words(row)}."
        if row["low"]:
            return self.match_words(row)
        if row["kind"] == MATCH and row["high"] == 0:
            return f"{listed(row['text'])} matches `{self.pattern}`, but did not succeed."
        ran = f"{plural(row['low_ran'], 'command')} ran" if row["low_ran"] else "no command was run"
        return f"No command matches `{self.pattern}`: {ran}."

    def match_words(self, row: Row) -> str:
        """Return which command matches for sure."""
        raise NotImplementedError


def open_words(row: Row) -> str:
    """Return what may match, behind a colon; empty where only rows that nothing records may."""
    return "" if row["kind"] is None else f": {may_be(row['kind'], row['text'])}"
