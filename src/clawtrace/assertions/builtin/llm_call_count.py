"""`llm_call_count`: how often the model was called."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.forms.bounds import Counted, Natural, bounds_of, check_count
from clawtrace.assertions.forms.count import Count
from clawtrace.assertions.forms.model_counts import model_calls

__all__ = ["LlmCallCount"]


class LlmCallCount(Assertion):
    """The number of answered model calls is as asked: exactly `count`, or within the bounds.

    Too many calls are a loop that costs money, too few an agent that did not work. A logical call counts once, however
    many spans record it; the evidence says how spans became calls.

    Example:
        - type: llm_call_count
          min: 1
          max: 4
    """

    main_field = "count"
    requires = ("llm_calls.outcome",)

    count: Counted | None = None
    """The exact number of calls, or `{min, max}`."""
    min: Natural | None = None
    """Smallest number of calls."""
    max: Natural | None = None
    """Largest number of calls."""
    include_failed: bool = False
    """Whether attempts that got no answer count too."""

    @model_validator(mode="after")
    def _check(self) -> LlmCallCount:
        check_count(self, self.count, self.min, self.max)
        return self

    @property
    def _bounds(self) -> dict[str, int]:
        """`min` and `max`, an exact count being both; what is given together must hold together."""
        return bounds_of(self.count, self.min, self.max)

    def question(self) -> Count:
        """Count the answered calls, with `include_failed` every request."""
        bounds = self._bounds
        return model_calls(bounds.get("min"), bounds.get("max"), include_failed=self.include_failed)

    def expectation(self) -> Any:
        """Return the bounds."""
        return self._bounds
