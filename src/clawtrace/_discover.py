"""Find every subclass of a class in a package: the one mechanism behind every registry.

A new assertion, report format, runner or log form is one new module in its package;
no list is edited.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TypeVar

__all__ = ["subclasses_in"]

T = TypeVar("T")


def subclasses_in(package: str, base: type[T]) -> list[type[T]]:
    """Import each module of `package` and return the concrete subclasses of `base` defined there.

    A class counts in the module that defines it, is public (no leading underscore) and is not
    marked ``abstract = True`` in its own body. The order is by module name, then definition.
    """
    root = importlib.import_module(package)
    found: list[type[T]] = []
    for info in sorted(pkgutil.iter_modules(root.__path__), key=lambda info: info.name):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{package}.{info.name}")
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, base)
                and value.__module__ == module.__name__
                and not value.__name__.startswith("_")
                and not vars(value).get("abstract", False)
            ):
                found.append(value)
    return found
