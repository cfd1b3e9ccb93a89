"""The registry of assertion types: built-in ones by module name, others through the entry point group.

No list is kept. A built-in type is the module of its name in `clawtrace.assertions.builtin`; only the modules of types
that are used are imported, which is what keeps start-up short. Third parties register a class under the entry point group
``clawtrace.assertions``, the entry's name being the type.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from clawtrace._discover import subclasses_in
from clawtrace.assertions.base import Assertion, AssertionProblem, InvalidAssertionError
from clawtrace.errors import ClawtraceError
from clawtrace.support.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from importlib import metadata

__all__ = ["UnknownTypeError", "added_types", "all_types", "get", "names", "parse_assertion"]

BUILTIN = "clawtrace.assertions.builtin"
ENTRY_POINTS = "clawtrace.assertions"
"""Entry point group in which other distributions register assertion types."""


class UnknownTypeError(ClawtraceError):
    """No assertion type has this name."""

    def __init__(self, name: Any) -> None:
        self.hint = did_you_mean(name, names()) if isinstance(name, str) else ""
        valid = "`clawtrace assertions` lists those that there are" if self.hint else f"valid: {', '.join(names())}"
        self.problem = f"unknown assertion type {name!r}; {valid}"
        super().__init__(f"{self.problem}. {self.hint}".rstrip())


class PluginError(ClawtraceError):
    """An assertion type of another distribution cannot be loaded."""


@cache
def _builtin_names() -> frozenset[str]:
    package = importlib.import_module(BUILTIN)
    return frozenset(info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_"))


@cache
def _plugins() -> dict[str, metadata.EntryPoint]:
    from importlib import metadata

    return {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINTS)}


def names() -> list[str]:
    """Return every type name in alphabetical order, without importing any type."""
    return sorted(_builtin_names() | _plugins().keys())


def all_types() -> dict[str, type[Assertion]]:
    """Return every type by name, in alphabetical order, importing all of them.

    Raises:
        PluginError: a registered type cannot be loaded, or takes the name of a built-in one.
    """
    return dict(sorted({**builtin_types(), **added_types()}.items()))


def builtin_types() -> dict[str, type[Assertion]]:
    """Return every type of clawtrace itself by name, in alphabetical order, importing all of them."""
    return dict(sorted((cls.type_name, cls) for cls in subclasses_in(BUILTIN, Assertion)))


def added_types() -> dict[str, type[Assertion]]:
    """Return every type of other distributions by name.

    Raises:
        PluginError: one cannot be loaded, or takes the name of a built-in one.
    """
    for name in _plugins():
        if name in _builtin_names():
            raise PluginError(f"{_origin(name)} registers the assertion type {name!r}, which is built in: rename it")
    return {name: _load(name) for name in sorted(_plugins())}


def get(name: Any) -> type[Assertion]:
    """Return the type called `name`, importing only its module; anything but a text names none.

    Raises:
        UnknownTypeError: there is none of that name; the error suggests the nearest.
        PluginError: the distribution that registers it cannot be loaded.
    """
    if not isinstance(name, str):
        raise UnknownTypeError(name)
    if name in _builtin_names():
        module = importlib.import_module(f"{BUILTIN}.{name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Assertion) and value.type_name == name:
                return value
    elif name in _plugins():
        return _load(name)
    raise UnknownTypeError(name)


def _origin(name: str) -> str:
    entry = _plugins()[name]
    distribution = f"the distribution {entry.dist.name!r}" if entry.dist else "an installed distribution"
    return f"{distribution} ({entry.value})"


def _load(name: str) -> type[Assertion]:
    try:
        found = _plugins()[name].load()
    except Exception as error:  # any error that a third party's module raises while it is imported
        raise PluginError(f"the assertion type {name!r} of {_origin(name)} cannot be loaded: {error!r}") from error
    if not (isinstance(found, type) and issubclass(found, Assertion) and found.type_name == name):
        raise PluginError(f"{_origin(name)} is no assertion class whose type is {name!r}")
    return found


def parse_assertion(written: Mapping[str, Any]) -> Assertion:
    """Read one assertion in the long notation: `type` and its fields.

    Raises:
        InvalidAssertionError: every problem with it, each with its path inside `written`.
        PluginError: its type is registered by a distribution that cannot be loaded.
    """
    __tracebackhide__ = True
    if "type" not in written:
        raise InvalidAssertionError([AssertionProblem(("type",), "is required: an assertion names its type")])
    try:
        cls = get(written["type"])
    except UnknownTypeError as error:
        raise InvalidAssertionError([AssertionProblem(("type",), error.problem, error.hint)]) from None
    fields = {key: value for key, value in written.items() if key != "type"}
    try:
        return cls.model_validate(fields)
    except ValidationError as error:
        from clawtrace.assertions.problems import problems_of

        raise InvalidAssertionError(problems_of(error, cls, written)) from None
