"""The functions of `clawtrace.expect`: one for each assertion type, made from its class, and conditions on spans.

Conditions are for `span_query`: ``spans(kind="tool").under(kind="agent")``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import get, parse_assertion

__all__ = ["Spans", "constructor", "spans"]


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
            required = [one.name for one in _signature(cls, main).parameters.values() if one.default is one.empty]
            example = f": {name}({required[0]}=…)" if required else ""
            first = f"only `{main}` may come without its name" if main else f"each needs its name{example}"
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


def spans(condition: Mapping[str, Any] | None = None, /, **entries: Any) -> Spans:
    """Return a condition on spans: the entries of `select` of `span_query`, of which all must be met.

    Args:
        condition: entries as a mapping, for keys that are no Python names (``{"not": …}``).
        entries: columns of `spans`, `attributes`, or spans around it (`parent`, `before`, …), each with its value; where
            a condition is wanted, a mapping or another `Spans`.
    """
    return Spans({**(condition or {}), **entries})


class Spans:
    """A condition on spans; every method returns a new one, or a question about the spans that meet it."""

    def __init__(self, condition: Mapping[str, Any]) -> None:
        """Use `spans`."""
        self.condition = {key: _plain(value) for key, value in condition.items()}
        """The condition as in case files."""

    def __repr__(self) -> str:
        return f"spans({self.condition!r})"

    # Narrowing --------------------------------------------------------------------------------

    def child_of(self, other: Spans | None = None, /, **entries: Any) -> Spans:
        """Return those of the spans whose parent is one of the others."""
        return self._related("parent", other, entries)

    def parent_of(self, other: Spans | None = None, /, **entries: Any) -> Spans:
        """Return those of the spans that have one of the others as a child."""
        return self._related("child", other, entries)

    def under(self, other: Spans | None = None, /, **entries: Any) -> Spans:
        """Return those of the spans that are somewhere under one of the others."""
        return self._related("ancestor", other, entries)

    def over(self, other: Spans | None = None, /, **entries: Any) -> Spans:
        """Return those of the spans that have one of the others somewhere under them."""
        return self._related("descendant", other, entries)

    def sibling_of(self, other: Spans | None = None, /, **entries: Any) -> Spans:
        """Return those of the spans that share their parent with one of the others."""
        return self._related("sibling", other, entries)

    def before(self, other: Spans | None = None, /, **entries: Any) -> Spans:
        """Return those of the spans that ended before one of the others started."""
        return self._related("before", other, entries)

    def after(self, other: Spans | None = None, /, **entries: Any) -> Spans:
        """Return those of the spans that started after one of the others had ended."""
        return self._related("after", other, entries)

    def overlapping(self, other: Spans | None = None, /, **entries: Any) -> Spans:
        """Return those of the spans that ran at the same time as one of the others."""
        return self._related("overlaps", other, entries)

    def _related(self, relation: str, other: Spans | None, entries: Mapping[str, Any]) -> Spans:
        return self & spans({relation: spans({**(other.condition if other else {}), **entries})})

    def __and__(self, other: Spans) -> Spans:
        """Return the spans that meet both."""
        if self.condition.keys().isdisjoint(other.condition):
            return Spans({**self.condition, **other.condition})
        return Spans({"and": [self, other]})

    def __or__(self, other: Spans) -> Spans:
        """Return the spans that meet one of both."""
        return Spans({"or": [self, other]})

    def __invert__(self) -> Spans:
        """Return the spans that do not meet it."""
        return Spans({"not": self})

    # Questions --------------------------------------------------------------------------------

    def exist(self) -> Assertion:
        """Ask whether there is at least one such span."""
        return self.number(min=1)

    def do_not_exist(self) -> Assertion:
        """Ask whether there is no such span."""
        return self.number(0)

    def number(self, exactly: int | None = None, /, *, min: int | None = None, max: int | None = None) -> Assertion:
        """Ask whether there are `exactly` so many such spans, or at least `min` and at most `max`."""
        bounds = {key: value for key, value in {"min": min, "max": max}.items() if value is not None}
        return self._asked(count=bounds if exactly is None else exactly)

    def all_are(self, other: Spans | None = None, /, **entries: Any) -> Assertion:
        """Ask whether there are such spans, and every one of them is one of the others too."""
        return self._asked(where={**(other.condition if other else {}), **_plain(entries)})

    def _asked(self, **fields: Any) -> Assertion:
        return parse_assertion({"type": "span_query", "select": self.condition, **fields})


def _plain(value: Any) -> Any:
    """Return a value as case files have it."""
    if isinstance(value, Spans):
        return value.condition
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
