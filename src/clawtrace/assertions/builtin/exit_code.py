"""`exit_code`: how a command ended."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from clawtrace.assertions.base import Outcome, Row
from clawtrace.assertions.commands.command_result import CommandResult
from clawtrace.assertions.forms.where import Where

__all__ = ["CommandExitCode"]


class CommandExitCode(CommandResult):
    """The last command, or the commands that `of` names, ended with this exit code.

    It is the exit code of a command that the agent ran, not of the agent (`agent_exit_code`). The last command may hide
    an earlier failure (`ls` after a build that broke): `of: all` looks at each one, `of: {matching: "^make"}` at the last
    that matches. In a compound command the code of `{matching}` is the simple command's own where the shell's code implies
    it, and unknown otherwise (`make; ls`). Where no exit code was recorded nothing is known. No command at all fails.

    Example:
        - type: exit_code
          value: 0
          of: {matching: "^make"}
    """

    type_name = "exit_code"
    main_field = "value"
    requires = ("commands.exit_code",)
    what = "exit code"
    shows = ("exit_code",)

    value: Annotated[int, Field(strict=True)]
    """The exit code; 0 is success."""

    def fit(self) -> Where:
        """Compare the exit code."""
        return Where("c.exit_code = :value", params={"value": self.value})

    def unread(self, row: Row) -> bool:
        """Return whether the exit code was not recorded."""
        return row["exit_code"] is None

    def expectation(self) -> Any:
        """Return the exit code, and of which commands."""
        return {"exit_code": self.value, **self.asked_of()}

    def actual(self, outcome: Outcome) -> Any:
        """Return the command that decided, and its exit code."""
        return {"command": outcome.row["text"], "exit_code": outcome.row["exit_code"]}

    def says(self, outcome: Outcome) -> str:
        """Return the exit code in words."""
        row = outcome.row
        if self.unread(row):
            return f"The exit code of {self.which(row)} is unknown: it was not recorded"
        return f"The exit code of {self.which(row)} is {row['exit_code']}, expected {self.value}"
