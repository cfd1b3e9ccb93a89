"""A number of calls within bounds: what the assertions that count model calls, tool calls and commands have in common."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.forms.bounds import Counted, Natural, check_bounds, need_one_of, words
from clawtrace.assertions.refused import refused

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
        need_one_of(self, "count", "min", "max")
        check_bounds(self.min, self.max, alone=self.count is None)
        least, most = self.bounds.get("min", 0), self.bounds.get("max")
        if self.count is not None and most is not None and least > most:
            asked = words(self.count.min, self.count.max).removeprefix("exactly ")
            raise refused(f"`count` ({asked}) is outside of `min` and `max`: no number satisfies all")
        return self

    @property
    def bounds(self) -> dict[str, Any]:
        """`min` and `max`, an exact count being both; what is given together must hold together."""
        given = (self, self.count) if self.count else (self,)
        lower, upper = (
            [bound for one in given if (bound := getattr(one, side)) is not None] for side in ("min", "max")
        )
        return ({"min": max(lower)} if lower else {}) | ({"max": min(upper)} if upper else {})

    def expectation(self) -> Any:
        """Return the bounds."""
        return self.bounds
