"""Problems of an assertion's fields, as a validation error."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticCustomError

__all__ = ["refused"]


def refused(problem: str, field: str = "", hint: str = "") -> PydanticCustomError:
    """Return the error to raise in a validator.

    Args:
        problem: what is wrong, and what would be valid.
        field: the field that is reported, where the validator is one of the whole model.
        hint: a nearby valid word ("Did you mean …?").
    """
    context: dict[str, Any] = {"problem": problem, "hint": hint}
    return PydanticCustomError("refused", "{problem}", context | ({"field": field} if field else {}))
