"""`exit_code`: how a command ended."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from clawtrace.assertions.base import Outcome
from clawtrace.assertions.commands.command_result import CommandResult
from clawtrace.model.query import Scalar

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

    value: Annotated[int, Field(strict=True)]
    """The exit code; 0 is success."""

    def fit(self) -> str:
        """Compare the exit code."""
        return "CASE WHEN c.exit_code IS NULL THEN 2 WHEN c.exit_code = :value THEN 1 ELSE 0 END"

    def fact(self) -> str:
        """Return the exit code."""
        return "'commands.exit_code'"

    def params(self) -> dict[str, Scalar]:
        """Return the expected exit code."""
        return {"value": self.value}

    def expectation(self) -> Any:
        """Return the exit code, and of which commands."""
        return {"exit_code": self.value, **self.asked_of()}

    def actual(self, outcome: Outcome) -> Any:
        """Return the command that decided, and its exit code."""
        return {"command": outcome.row["text"], "exit_code": outcome.row["exit_code"]}

    def says(self, outcome: Outcome) -> str:
        """Say the exit code."""
        row = outcome.row
        if row["exit_code"] is None:
            return f"The exit code of {self.which(row)} is unknown: it was not recorded"
        return f"The exit code of {self.which(row)} is {row['exit_code']}, expected {self.value}"
