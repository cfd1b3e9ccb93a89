"""Whether a command was run: one question that `ran` and `not_ran` ask from opposite sides."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.commands.commands import MATCH, listed, may_be
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.forms.form import Row
from clawtrace.assertions.matching.matchers import RegexText

__all__ = ["CommandPattern", "open_words"]


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
        """Say which command matches, or may."""
        row = outcome.row
        if outcome.holds is None:
            which = f"one of {row['low_ran']} commands" if row["low_ran"] > 1 else "a command"
            return f"Whether {which} matches {self.pattern!r} is unknown{open_words(row)}."
        if row["low"]:
            return self.match_words(row)
        if row["kind"] == MATCH and row["high"] == 0:
            return f"{listed(row['text'])} matches {self.pattern!r}, but did not succeed."
        ran = f"{plural(row['low_ran'], 'command')} ran" if row["low_ran"] else "no command was run"
        return f"No command matches {self.pattern!r}: {ran}."

    def match_words(self, row: Row) -> str:
        """Say which command matches for sure."""
        raise NotImplementedError


def open_words(row: Row) -> str:
    """Say what may match, behind a colon; empty where only rows that nothing records may."""
    return "" if row["kind"] is None else f": {may_be(row['kind'], row['text'])}"
