"""`error_contains`: what a command wrote to standard error."""

from __future__ import annotations

from clawtrace.assertions.commands.command_result import CommandText

__all__ = ["ErrorContains"]


class ErrorContains(CommandText):
    """The standard error of the last command, or of the commands that `of` names, contains the text.

    A message on standard error says what went wrong, or warns though all went well. Where the instrumentation does not
    tell standard error and output apart, all that was printed is looked at, and the message says so. Where neither was
    captured nothing is known. No command at all fails.

    Example:
        - type: error_contains
          value: file not found
          of: {matching: "^cat"}
    """

    requires = ("commands.stderr", "commands.output")
    what = "standard error"
    stream = "stderr"
