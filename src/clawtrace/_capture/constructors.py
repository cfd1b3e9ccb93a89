"""The functions of `clawtrace.expect`: one for each assertion type, made from its class."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import get, parse_assertion

__all__ = ["constructor"]


@cache
def constructor(name: str) -> Callable[..., Assertion]:
    """Return the function that makes assertions of the type `name`.

    Raises:
        UnknownTypeError: there is none.
    """
    cls = get(name)
    main = cls.main_field

    def make(*values: Any, **fields: Any) -> Assertion:
        if len(values) > (1 if main else 0):
            first = f"only `{main}` may come without its name" if main else "each needs its name"
            raise TypeError(f"{name}() takes fields: {first}")
        if values and main in fields:
            raise TypeError(f"{name}() got two values for `{main}`")
        return parse_assertion({"type": name, **({main: values[0]} if main and values else {}), **fields})

    make.__name__ = make.__qualname__ = name
    make.__doc__ = inspect.getdoc(cls)
    make.__module__ = "clawtrace.expect"
    vars(make)["__signature__"] = _signature(cls, main)
    return make


def _signature(cls: type[Assertion], main: str | None) -> inspect.Signature:
    """Return what `help` shows: every field by name, the main one first and also without."""
    cls.model_rebuild()  # its fields are known once it is built, which waits for the first use
    fields = inspect.signature(cls).parameters.values()
    first = [field.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for field in fields if field.name == main]
    return inspect.Signature([*first, *(field for field in fields if field.name != main)])
