"""What results and failures of tools say in words: that the tool failed, or that it could not begin."""

from __future__ import annotations

import re

__all__ = ["may_say_that_none_ran", "says_that_arguments_lack", "says_that_it_failed"]

_BEGINNING = 200

_FRAMES = r"""[\W_]* ((result|error|output|content|text|message|type) \W+)*"""
"""What a result may be wrapped in."""

_BY_FRAMEWORK = re.compile(
    rf"""(?ix) {_FRAMES}
    ( (an \s)? (error|exception) \s ((occurred|raised) \s)? ((while|when|during|in|by) \s)? (the \s)?
      (execut|call|invok|running|tool|function)
    | (failed|failure) \s (to|while|in) \s (execut|call|invok|run)
    | (tool|function) \s (\S+ \s)? ((execution|call) \s)? (failed|raised|error) )"""
)
"""Words of frameworks, which answer so for a tool that raised an error."""

_BY_ANYBODY = re.compile(rf"""(?ix) {_FRAMES} (error|exception): \s""")
"""Words of a framework, or of the tool itself."""

_LACKING = re.compile(
    r"missing a required (keyword-only )?argument|missing \d+ required (positional|keyword-only) argument|"
    r"got an unexpected keyword argument"
)
"""Words of Python, where a function is called with other arguments than it takes."""


def says_that_arguments_lack(text: str | None) -> bool:
    """Return whether a failure may be that of a call which could not begin: the tool may have run, or not."""
    return text is not None and _LACKING.search(text) is not None


_OF_REFUSALS = re.compile(
    r"""(?ix) error | exception | fail | invalid | unknown | unexpected | unsupported | missing | required | refus | denied
    | (no|not|n't) \s (\S+ \s)? (a \s)? (tool|function|such|found|exist|available|valid|fit|match|allowed|call) | cannot | unable"""
)
"""Words of a program that answers for a call of a tool that it does not have, or whose arguments it does not take."""


def may_say_that_none_ran(result: str | None) -> bool:
    """Return whether a result may be the answer of a program that ran no tool."""
    return result is not None and _OF_REFUSALS.search(result[:_BEGINNING]) is not None


def says_that_it_failed(result: str | None, generic: bool) -> bool:
    """Return whether a result begins with the words by which frameworks answer for a tool that raised an error.

    Words that may be the tool's own say it only where nothing is known of the framework (`generic`).
    """
    if result is None:
        return False
    beginning = result[:_BEGINNING]
    return bool(_BY_FRAMEWORK.match(beginning) or (generic and _BY_ANYBODY.match(beginning)))
