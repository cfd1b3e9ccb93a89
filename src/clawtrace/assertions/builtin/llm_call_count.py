"""`llm_call_count`: how often the model was called."""

from __future__ import annotations

from clawtrace.assertions._call_count import CallCount
from clawtrace.assertions.forms.calls import model_calls
from clawtrace.assertions.forms.count import Count

__all__ = ["LlmCallCount"]


class LlmCallCount(CallCount):
    """The number of answered model calls is as asked: exactly `count`, or within the bounds.

    Too many calls are a loop that costs money, too few an agent that did not work. A logical call counts once, however
    many spans record it; the evidence says how spans became calls.

    Example:
        - type: llm_call_count
          min: 1
          max: 4
    """

    requires = ("llm_calls.outcome",)

    include_failed: bool = False
    """Whether attempts that got no answer count too."""

    def question(self) -> Count:
        """Count the answered calls, with `include_failed` every request."""
        return model_calls(**self.bounds, include_failed=self.include_failed)
