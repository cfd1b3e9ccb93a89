"""Every assertion type as a function: ``from clawtrace.expect import tool_sequence``.

::

    trace.check(tool_sequence(expected=["search", "send"]))
    trace.check(tool_sequence(["search", "send"], mode="strict"))     # the main field needs no name

The functions come from the registry, also those of other distributions; ``help(clawtrace.expect.tool_sequence)`` says
what a type means and takes, and so does ``clawtrace explain tool_sequence``.

`spans` writes conditions for `span_query`::

    searches = spans(kind="tool", tool_name="re:^search").under(kind="agent", agent_name="researcher")
    trace.check(searches.exist())
    trace.check(searches.all_are(error=None))
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from clawtrace._capture.spans import spans
from clawtrace.assertions.registry import UnknownTypeError, get, names, parse_assertion

if TYPE_CHECKING:
    from clawtrace.assertions.base import Assertion


def __getattr__(name: str) -> Callable[..., Assertion]:
    """Return the function that makes assertions of the type `name`."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return _constructor(name)
    except UnknownTypeError as error:
        raise AttributeError(str(error), name=name, obj=sys.modules[__name__]) from None


def __dir__() -> list[str]:
    return sorted([*names(), spans.__name__])


@cache
def _constructor(name: str) -> Callable[..., Assertion]:
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
    make.__module__ = __name__
    vars(make)["__signature__"] = _signature(cls, main)
    return make


def _signature(cls: type[Assertion], main: str | None) -> inspect.Signature:
    """Return what `help` shows: every field by name, the main one first and also without."""
    cls.model_rebuild()  # its fields are known once it is built, which waits for the first use
    fields = inspect.signature(cls).parameters.values()
    first = [field.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for field in fields if field.name == main]
    return inspect.Signature([*first, *(field for field in fields if field.name != main)])
