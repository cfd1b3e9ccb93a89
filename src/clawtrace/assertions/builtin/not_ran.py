"""`not_ran`: a command was never run."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Outcome
from clawtrace.assertions.commands.command_pattern import CommandPattern
from clawtrace.assertions.commands.commands import listed
from clawtrace.assertions.forms.bounds import plural
from clawtrace.model.query import Query

__all__ = ["NotRan"]


class NotRan(CommandPattern):
    r"""No command was run whose text, or a simple command in it, matches the regular expression.

    The pattern is searched in the whole text of each call of a shell-like tool and in each simple command in it. So
    `rm -rf` is also found in `echo "rm -rf"`; `^(\S*/)?rm\b` asks for the program and finds it in `cd x && sudo /bin/rm y`
    too. A part that a shell may have skipped (`false && rm x`) counts. A command that a guard blocked did not run and is no
    match; `tool_not_invoked` and `tool_call` with `status: blocked` ask for attempts. A text that was not captured,
    redacted, or not split could hide a match: then nothing is known. Nor is it where a tool that is not known as a shell was
    given a `command` that matches. Another run without any call of a shell passes.

    Example:
        - type: not_ran
          pattern: "^rm -rf /"
    """

    def query(self) -> Query:
        """Look for a matching command."""
        return self.search(found=False)

    def expectation(self) -> Any:
        """Return the pattern."""
        return {"never": self.pattern}

    def explain(self, outcome: Outcome) -> str:
        """Say which command matches."""
        row = outcome.row
        if outcome.holds is None:
            return self.unknown_words(outcome)
        if outcome.holds:
            return f"No command matches {self.pattern!r}: {self.recorded_words(outcome)}."
        more = f" ({plural(row['met'], 'match')})" if row["met"] == 1 else f" (first of {row['met']} matches)"
        return f"{listed(row['text'])} matches {self.pattern!r}, which must not be run{more}."
