"""Every assertion type as a function: ``from clawtrace.expect import tool_sequence``.

::

    trace.check(tool_sequence(expected=["search", "send"]))
    trace.check(tool_sequence(["search", "send"], mode="strict"))     # the main field needs no name

The functions come from the registry, also those of other distributions; ``help(clawtrace.expect.tool_sequence)`` says
what a type means and takes, and so does ``clawtrace explain tool_sequence``. Type checkers read ``expect.pyi``, which
``make docs`` writes.

`spans` writes conditions for `span_query`::

    searches = spans(kind="tool", tool_name="re:^search").under(kind="agent", agent_name="researcher")
    trace.check(searches.exist())
    trace.check(searches.all_are(error=None))
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from clawtrace._capture.constructors import Spans, constructor, spans
from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import UnknownTypeError, names


def __getattr__(name: str) -> Callable[..., Assertion]:
    """Return the function that makes assertions of the type `name`."""
    if name == "__all__":
        return __dir__()
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return constructor(name)
    except UnknownTypeError as error:
        raise AttributeError(str(error), name=name, obj=sys.modules[__name__]) from None


def __dir__() -> list[str]:
    return sorted([*names(), spans.__name__, Spans.__name__])
