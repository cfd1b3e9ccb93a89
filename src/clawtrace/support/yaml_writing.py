"""YAML that a person reads in a review: long texts as blocks, keys in their order."""

from __future__ import annotations

import re
from typing import Any

import yaml

__all__ = ["OneLine", "readable_yaml"]

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
