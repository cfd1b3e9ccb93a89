"""`not_ran`: a command was never run."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Row
from clawtrace.assertions.commands.command_count import CommandPattern, matching_commands
from clawtrace.assertions.commands.commands import listed
from clawtrace.assertions.forms.count import Count

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

    def question(self) -> Count:
        """Look for a matching command."""
        return matching_commands(self.pattern, max=0, everywhere=True)

    def expectation(self) -> Any:
        """Return the pattern."""
        return {"never": self.pattern}

    def match_words(self, row: Row) -> str:
        """Return which command matches."""
        more = "1 match" if row["low"] == 1 else f"first of {row['low']} matches"
        return f"{listed(row['text'])} matches `{self.pattern}`, which must not be run ({more})."
