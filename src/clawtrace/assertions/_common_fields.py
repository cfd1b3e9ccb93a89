"""The fields that every assertion accepts and that need more than a type: how they are read, and what goes together."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from clawtrace.assertions.base import Assertion

__all__ = ["Dimension", "Dimensions", "LookAgain", "MinPassRate", "Turn", "check_common_fields"]

Dimension = Literal["task", "process", "autonomy", "closeness", "efficiency", "spark"]


def _turn(value: Any) -> Any:
    if value is None or value == "last" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise PydanticCustomError(
        "turn", "must be the number of a turn, counted from 1, or `last`, found {found}", {"found": repr(value)}
    )


def _day(value: Any) -> Any:
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    try:
        if isinstance(value, str) and len(value) == len("2026-11-20"):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise PydanticCustomError("day", "must be a date such as 2026-11-20, found {found}", {"found": repr(value)})


def _each_once(value: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
    return tuple(dict.fromkeys(value))


Dimensions = Annotated[tuple[Dimension, ...], AfterValidator(_each_once)]

Turn = Annotated[
    int | Literal["last"] | None,
    BeforeValidator(_turn),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"const": "last"}, {"type": "null"}]}),
]
"""A turn of the conversation."""

LookAgain = Annotated[date | None, BeforeValidator(_day)]
"""A day, without a time."""

MinPassRate = Annotated[float, Field(strict=True, gt=0, le=1)]


def check_common_fields(assertion: Assertion) -> None:
    """Refuse fields that say nothing together.

    Raises:
        PydanticCustomError: what is wrong, with its field.
    """
    unscoped = assertion.unscoped or ("" if assertion.needs_trace else "it asks nothing of the trace.")
    for name in ("agent", "turn"):
        if unscoped and getattr(assertion, name) is not None:
            raise _wrong(name, f"`{name}` cannot narrow this question down: {unscoped}")
    if not assertion.expects_failure:
        for name in ("reason", "until"):
            if getattr(assertion, name) is not None:
                raise _wrong(name, f"`{name}` belongs to `expect: fail`, which is not given")
        return
    if assertion.reason is None:
        raise _wrong("reason", "`expect: fail` needs `reason`: what is known to be wrong")
    if assertion.until is None:
        raise _wrong("until", "`expect: fail` needs `until`: the day on which to look at it again, such as 2026-11-20")
    if "min_pass_rate" in assertion.model_fields_set:
        raise _wrong(
            "min_pass_rate", "`min_pass_rate` and `expect: fail` exclude each other: a known failure has no rate"
        )


def _wrong(field: str, problem: str) -> PydanticCustomError:
    return PydanticCustomError("common_field", "{problem}", {"problem": problem, "field": field})
