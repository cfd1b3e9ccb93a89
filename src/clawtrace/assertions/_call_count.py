"""A number of calls within bounds: what the assertions that count model calls, tool calls and commands have in common."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.forms.bounds import Counted, Natural, bounds_of, check_count

__all__ = ["CallCount"]


class CallCount(Assertion):
    """Base of the assertions that a number of calls is as asked."""

    main_field = "count"

    count: Counted | None = None
    """The exact number of calls, or `{min, max}`."""
    min: Natural | None = None
    """Smallest number of calls."""
    max: Natural | None = None
    """Largest number of calls."""

    @model_validator(mode="after")
    def _check(self) -> CallCount:
        check_count(self, self.count, self.min, self.max)
        return self

    @property
    def bounds(self) -> dict[str, int]:
        """`min` and `max`, an exact count being both; what is given together must hold together."""
        return bounds_of(self.count, self.min, self.max)

    def expectation(self) -> Any:
        """Return the bounds."""
        return self.bounds
