"""`run_count`: how often a command was run."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions._call_count import CallCount
from clawtrace.assertions.base import Outcome
from clawtrace.assertions.commands.command_count import matching_commands, open_words
from clawtrace.assertions.commands.commands import listed
from clawtrace.assertions.forms.bounds import interval, number_or_bounds, words
from clawtrace.assertions.forms.count import Count
from clawtrace.assertions.matching.matchers import RegexText

__all__ = ["RunCount"]


class RunCount(CallCount):
    """The number of simple commands that match the regular expression is as asked: exactly `count`, or within the bounds.

    Simple commands are counted: `curl a && curl b` are two, `sudo curl a` and `sh -c 'curl a'` are one. A pattern that is
    found only in what carries simple commands (`cd x && make`, `^sudo`) counts once for the smallest such text. What a
    loop repeats is one command. Blocked commands did not run. A text that was not captured, redacted, or not split
    could hold any number of matches.

    Example:
        - type: run_count
          pattern: "^curl"
          min: 2
          max: 5
    """

    main_field = "pattern"
    requires = ("commands.text", "tool_calls.name")

    pattern: RegexText
    """Regular expression, found anywhere in the text of a simple command."""

    def question(self) -> Count:
        """Count the commands that match."""
        return matching_commands(self.pattern, **self.bounds)

    def expectation(self) -> Any:
        """Return the pattern and the bounds."""
        return {"pattern": self.pattern, "min": self.bounds.get("min"), "max": self.bounds.get("max")}

    def actual(self, outcome: Outcome) -> Any:
        """Return how many commands match."""
        return {"matching": number_or_bounds(outcome.row["low"], outcome.row["high"])}

    def explain(self, outcome: Outcome) -> str:
        """Return how many commands match."""
        row = outcome.row
        low, high = row["low"], row["high"]
        found = interval(low, high, "command")
        first = f", the first one {listed(row['text'])}" if low else ""
        why = "" if low or outcome.holds is not None else open_words(row)
        asked = words(self.bounds.get("min"), self.bounds.get("max"))
        return f"{found[0].upper()}{found[1:]} matched {self.pattern!r}, expected {asked}{first}{why}."
