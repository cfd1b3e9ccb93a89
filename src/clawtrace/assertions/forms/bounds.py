"""Bounds: the numbers that limit a count or a sum, checked when loaded and decided on intervals in SQL.

An unknown part makes a sum an interval ``[low, high]`` (``high`` NULL: unbounded); a bound is decided only when
the whole interval lies on one side of it (spec: assertions.md §2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from clawtrace.assertions.refused import refused
from clawtrace.support.attribute_docs import Documented
from clawtrace.support.figures import beside, duration

__all__ = [
    "Amount",
    "Bounds",
    "Counted",
    "Natural",
    "all_sql",
    "check_bounds",
    "decide_sql",
    "interval",
    "milliseconds",
    "need_one_of",
    "number_or_bounds",
    "numbers",
    "plural",
    "words",
]

Natural = Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)]
"""A whole number from 0 that fits into 64 bits; text and booleans are refused."""

Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
"""A number from 0; text and booleans are refused."""


def need_one_of(model: BaseModel, *names: str) -> None:
    """Refuse a model that sets none of `names`."""
    if all(getattr(model, name) is None for name in names):
        *first, last = (f"`{name}`" for name in names)
        listed = f"{', '.join(first)} or {last}" if first else last
        raise refused(f"needs at least one of {listed}: without it nothing is checked")


def check_bounds(minimum: int | None, maximum: int | None, *, alone: bool = True, field: str = "min") -> None:
    """Refuse bounds that no number can meet, and where nothing else is asked, those that every number meets."""
    if alone and minimum == 0 and maximum is None:
        raise refused("every number is at least 0: nothing is checked", field)
    if minimum is not None and maximum is not None and minimum > maximum:
        raise refused(f"`min` ({minimum}) is greater than `max` ({maximum}): no number satisfies both", "min")


class Bounds(Documented):
    """A count's lower and upper bound, both inclusive."""

    min: Natural | None = None
    """The smallest count that is right."""
    max: Natural | None = None
    """The largest count that is right."""

    @model_validator(mode="after")
    def _check(self) -> Bounds:
        need_one_of(self, "min", "max")
        check_bounds(self.min, self.max, alone=False)
        return self


def _exactly(written: Any) -> Any:
    """Use a single number for both bounds."""
    if isinstance(written, Mapping | Bounds):
        return written
    if isinstance(written, bool) or not isinstance(written, int):
        raise refused(f"must be a whole number, or a mapping of `min` and `max`, found {written!r}")
    return {"min": written, "max": written}


_WHOLE = {"type": "integer", "minimum": 0}

Counted = Annotated[
    Bounds,
    BeforeValidator(_exactly),
    WithJsonSchema(
        {
            "anyOf": [
                _WHOLE,
                {"type": "object", "properties": {"min": _WHOLE, "max": _WHOLE}, "additionalProperties": False},
            ]
        }
    ),
]
"""An exact number, or its bounds."""


def decide_sql(low: str, high: str, minimum: str | None, maximum: str | None) -> str:
    """Return a CASE that decides the interval [low, high] (high NULL: unbounded) against bounds, each SQL or None."""
    wrong, right = [], []
    if minimum is not None:
        wrong.append(f"{high} < {minimum}")
        right.append(f"{low} >= {minimum}")
    if maximum is not None:
        wrong.append(f"{low} > {maximum}")
        right.append(f"{high} <= {maximum}")
    return f"CASE WHEN {' OR '.join(wrong)} THEN FALSE WHEN {' AND '.join(right)} THEN TRUE ELSE NULL END"


def all_sql(decided: Sequence[str]) -> str:
    """Return SQL that is true where all of some answers are, false where one is, and else NULL."""
    if len(decided) == 1:
        return decided[0]
    false = " OR ".join(f"({one}) = FALSE" for one in decided)
    true = " AND ".join(f"({one}) = TRUE" for one in decided)
    return f"CASE WHEN {false} THEN FALSE WHEN {true} THEN TRUE ELSE NULL END"


def words(minimum: float | None, maximum: float | None) -> str:
    """Return bounds in words: "at least 1", "at most 4", "none", "1 to 4", "exactly 2"."""
    if minimum is None:
        return f"at most {maximum}" if maximum else "none"
    if maximum is None:
        return f"at least {minimum}"
    return f"exactly {minimum}" if minimum == maximum else f"{minimum} to {maximum}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: "1 call", "2 calls"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def interval(low: int, high: int | None, noun: str) -> str:
    """Return how many there are: "3 calls", "2 to 3 calls", "at least 2 calls" or "0 or more calls" where nothing bounds them."""
    if high is None:
        return f"at least {plural(low, noun)}" if low else f"0 or more {noun}s"
    return plural(low, noun) if low == high else f"{low} to {plural(high, noun)}"


def number_or_bounds(low: float, high: float | None) -> float | list[float | None]:
    """Return a number as JSON: itself where it is known, else its bounds; an upper one of None is none."""
    return low if low == high else [low, high]


def numbers(row: Mapping[str, Any], keys: Iterable[str], alone: str) -> Any:
    """Return the numbers of a row, ``low<key>`` to ``high<key>``, as JSON; a single one without key, which is called `alone`, bare."""
    found = {key.strip("_") or alone: number_or_bounds(row[f"low{key}"], row[f"high{key}"]) for key in keys}
    return found[alone] if list(found) == [alone] else found


def milliseconds(value: float, *bounds: float) -> str:
    """Return milliseconds in readable units, rounded to stay on the same side of each bound; exact without bounds."""
    bounds = bounds or (value,)
    if value < 1000:
        return f"{beside(value, *bounds, written='.4g')} ms"
    unit = 1000 if value < 3_600_000 else 60_000
    rounded = round(value / unit) * unit
    if value >= 120_000 and all((rounded > one, rounded < one) == (value > one, value < one) for one in bounds):
        return duration(value)
    seconds = (value / 1000, *(one / 1000 for one in bounds))
    return f"{beside(*seconds, written='.0f' if value >= 1e7 else '.4g')} s"
