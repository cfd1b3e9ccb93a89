"""`output_contains`: what a command printed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clawtrace.assertions.commands.command_result import CommandText
from clawtrace.assertions.matching.result_text import contains

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

    main_field = "value"
    requires = ("commands.stdout", "commands.output")
    what = "output"

    value: Annotated[str, Field(min_length=1)]
    """Text, compared case-sensitively."""

    def met(self, text: str) -> bool:
        """Look for the text."""
        return contains(text, self.value)
