"""`output_equals`: exactly what a command printed."""

from __future__ import annotations

from clawtrace.assertions.commands.command_result import CommandText
from clawtrace.assertions.matching.matchers import one_form
from clawtrace.assertions.matching.redacted import contains, holds_mark

__all__ = ["OutputEquals"]


class OutputEquals(CommandText):
    """The output of the last command, or of the commands that `of` names, is exactly the text.

    White space around both is left out. Standard output is looked at. Where the instrumentation does not tell it apart, the
    tool's own words may stand around it ("Process exited with code 0"): text that equals all of it passes, text that is
    only a part of it leaves the question open. Where no output was captured nothing is known. No command at all fails.

    Example:
        - type: output_equals
          value: "100"
    """

    requires = ("commands.stdout", "commands.output")
    what = "output"
    verb = "equal"

    value: str
    """The whole text; empty for a command that prints nothing."""

    def met(self, text: str) -> bool:
        """Compare the texts."""
        return one_form(text.strip()) == one_form(self.value.strip())

    def open_in(self, text: str) -> bool:
        """Return whether the text is a part of what was printed."""
        return contains(text, self.value.strip()) or holds_mark(text)
