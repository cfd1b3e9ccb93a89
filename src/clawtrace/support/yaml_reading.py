"""YAML files, parsed in C where PyYAML was built with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

__all__ = ["read_foreign_yaml", "read_yaml"]

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST = 200
_MOST_VALUES = 5_000_000


def read_yaml(data: bytes | str) -> Any:
    """Return what a YAML file says.

    Raises:
        yaml.YAMLError: it is no YAML.
    """
    return yaml.load(data, Loader=_LOADER)


def read_foreign_yaml(data: bytes | str) -> Any:
    """Return what a third party's YAML file says.

    Raises:
        yaml.YAMLError: it is no YAML.
        ValueError: it is nested too deeply, or expands to too much.
    """
    _check_size(yaml.parse(data, Loader=_LOADER))
    return read_yaml(data)


def _check_size(events: Iterable[Any]) -> None:
    """Refuse the events of a YAML parser that would break its reader.

    That is a depth at which it ends the process, and aliases that expand to billions of values.

    Raises:
        ValueError: it is too deep or too large.
    """
    open_sizes, sizes = [0], dict[str, int]()
    anchors: list[str | None] = []
    for event in events:
        name = type(event).__name__
        if name in ("MappingStartEvent", "SequenceStartEvent"):
            open_sizes.append(0)
            anchors.append(event.anchor)
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            size, anchor = open_sizes.pop(), anchors.pop()
            open_sizes[-1] += size + 1
            if anchor:
                sizes[anchor] = size + 1
        elif name in ("ScalarEvent", "AliasEvent"):
            open_sizes[-1] += sizes.get(event.anchor, 1) if name == "AliasEvent" else 1
        if len(open_sizes) > _DEEPEST:
            raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
        if open_sizes[-1] > _MOST_VALUES:
            raise ValueError(f"it expands to more than {_MOST_VALUES} values")
