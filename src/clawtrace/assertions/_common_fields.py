"""The fields that every assertion accepts and that need more than a type: how they are read."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from clawtrace.assertions.refused import refused

__all__ = ["Dimension", "Dimensions", "LookAgain", "MinPassRate", "Turn"]

Dimension = Literal["task", "process", "autonomy", "closeness", "efficiency", "spark"]


def _turn(value: Any) -> Any:
    if value is None or value == "last" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise refused(f"must be the number of a turn, counted from 1, or `last`, found {value!r}")


def _day(value: Any) -> Any:
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    try:
        if isinstance(value, str) and len(value) == len("2026-11-20"):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise refused(f"must be a date such as 2026-11-20, found {value!r}")


Dimensions = Annotated[tuple[Dimension, ...], AfterValidator(lambda value: tuple(dict.fromkeys(value)))]

Turn = Annotated[
    int | Literal["last"] | None,
    BeforeValidator(_turn),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "last"}, {"type": "null"}]}),
]
"""A turn of the conversation."""

LookAgain = Annotated[date | None, BeforeValidator(_day)]
"""A day, without a time."""

MinPassRate = Annotated[float, Field(strict=True, gt=0, le=1)]
