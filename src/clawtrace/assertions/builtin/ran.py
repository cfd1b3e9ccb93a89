"""`ran`: a command was run."""

from __future__ import annotations

from typing import Any, Literal

from clawtrace.assertions.base import Outcome, Row
from clawtrace.assertions.commands.command_count import CommandPattern, matching_commands
from clawtrace.assertions.commands.commands import MATCH, listed
from clawtrace.assertions.forms.count import Count

__all__ = ["Ran"]


class Ran(CommandPattern):
    """A command was run whose text, or a simple command in it, matches the regular expression.

    Commands are the calls of shell-like tools. The pattern is searched in the whole text, and in each simple command of
    a compound one (`a && b; c | d`, `sh -c 'a'`, `env X=1 a`, `sudo a`), so that `^docker build` also finds
    `cd app && sudo docker build .`. A part of a compound command counts although a shell may have skipped it;
    `status: ok` asks for one that succeeded: its own exit code is known to be 0, not that of a later command in the same
    text. A command that was blocked, or that nothing carried out, did not run.

    Example:
        - type: ran
          pattern: "^docker build"
          status: ok
    """

    status: Literal["any", "ok"] = "any"
    """`ok`: the matching command succeeded; `any`: it may have failed."""

    def question(self) -> Count:
        """Look for a matching command."""
        return matching_commands(self.pattern, min=1, everywhere=True, ok=self.status == "ok")

    def expectation(self) -> Any:
        """Return the pattern and the status."""
        return {"ran": self.pattern, "status": self.status}

    def explain(self, outcome: Outcome) -> str:
        """Say also of a match that whether it succeeded is unknown."""
        row = outcome.row
        if self.status == "ok" and outcome.holds is None and row["kind"] == MATCH:
            return f"{listed(row['text'])} matches `{self.pattern}`; whether it succeeded is unknown."
        return super().explain(outcome)

    def match_words(self, row: Row) -> str:
        """Return which command matches."""
        succeeded = " and succeeded" if self.status == "ok" else ""
        return f"{listed(row['text'])} matches `{self.pattern}`{succeeded}."
