"""`output_contains`: what a command printed."""

from __future__ import annotations

from clawtrace.assertions.commands.command_result import CommandText

__all__ = ["OutputContains"]


class OutputContains(CommandText):
    """The output of the last command, or of the commands that `of` names, contains the text.

    It is what a command of the agent printed, not the agent's answer (`final_response`). Standard output is looked at;
    where the instrumentation does not tell it apart from standard error and from the tool's own words, all of it is, and
    the message says so. Where no output was captured nothing is known. No command at all fails.

    Example:
        - type: output_contains
          value: Successfully created
          of: any
    """

    requires = ("commands.stdout", "commands.output")
    what = "output"
