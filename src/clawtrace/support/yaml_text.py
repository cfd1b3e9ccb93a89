"""YAML: files, parsed in C where PyYAML was built with it; and texts that a person reads in a review, long ones as blocks, keys in their order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

__all__ = ["OneLine", "read_foreign_yaml", "read_yaml", "readable_yaml"]

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


_QUOTED = re.compile(r"[-+.]?\d[\d_.eE+-]*|.*(?:\n\n|[\x85\u2028\u2029\ufeff].*)", re.DOTALL)
"""Texts that a reader of YAML 1.2 may take for numbers, or whose line ends are not those of YAML alone."""


class OneLine(dict[str, Any]):
    """A mapping that is written in one line."""

    @classmethod
    def of(cls, value: Any) -> Any:
        """Return a mapping so; any other value as it is."""
        return cls(value) if isinstance(value, dict) else value


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Write equal values twice: no reader looks for an anchor."""
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent the entries of a list below their key."""
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _QUOTED.fullmatch(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _one_line(dumper: yaml.SafeDumper, data: OneLine) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(OneLine, _one_line)


def readable_yaml(data: Any) -> str:
    """Return JSON-like `data` as YAML."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
