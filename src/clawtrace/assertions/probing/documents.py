"""Parts of a written document: headings of Markdown, keys of YAML, JSON or front matter; and the state of a router."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

__all__ = ["fields_of", "headings", "lookup", "routed_agents", "same", "section_of", "yaml_value"]

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class FoundValue(NamedTuple):
    """A value that a path led to."""

    value: Any


class Heading(NamedTuple):
    """A heading of a Markdown document."""

    text: str
    """As plain text."""
    level: str
    """`h1` to `h6`."""
    begins: int
    """Its first line, counted from 0."""
    ends: int
    """The line after it."""

    def is_called(self, name: str) -> bool:
        """Return whether this is its text, white space and case aside."""
        return " ".join(self.text.split()).casefold() == " ".join(name.split()).casefold()


def headings(text: str) -> list[Heading]:
    """Return the headings of a Markdown document, in order; front matter and code fences have none."""
    from markdown_it import MarkdownIt

    found = []
    for before, token in pairwise(MarkdownIt("commonmark").parse(_FRONT_MATTER.sub("", text))):
        if before.type == "heading_open" and token.type == "inline" and before.map is not None:
            plain = "".join(part.content for part in token.children or () if part.content).strip()
            found.append(Heading(plain, before.tag, *before.map))
    return found


def section_of(text: str, heading: str) -> str | None:
    """Return the part of a Markdown document below a heading, up to the next one of its level; None without the heading."""
    found = headings(text)
    place = next((number for number, one in enumerate(found) if one.is_called(heading)), None)
    if place is None:
        return None
    end = next((one.begins for one in found[place + 1 :] if one.level <= found[place].level), None)
    return "".join(_FRONT_MATTER.sub("", text).splitlines(keepends=True)[found[place].ends : end]).strip()


def yaml_value(text: str) -> Any:
    """Return the value of a YAML or JSON text.

    Raises:
        ValueError: it is neither, or cannot be read; the text says why.
    """
    import yaml

    from clawtrace.support.yaml_reading import read_foreign_yaml

    try:
        return read_foreign_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"is no YAML: {' '.join(str(error).split())[:200]}") from None


def fields_of(text: str) -> Mapping[str, Any] | None:
    """Return the mapping that a document is, or that its front matter holds; None where there is none."""
    front = _FRONT_MATTER.match(text)
    try:
        value = yaml_value(front[1] if front else text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def lookup(mapping: Mapping[str, Any], path: str) -> FoundValue | None:
    """Return the value of a key, written whole or as a dotted path into nested mappings and lists; None without one."""
    if path in mapping:
        return FoundValue(mapping[path])
    current: Any = mapping
    for step in path.split("."):
        if isinstance(current, Mapping) and step in current:
            current = current[step]
        elif isinstance(current, list) and step.isdecimal() and int(step) < len(current):
            current = current[int(step)]
        else:
            return None
    return FoundValue(current)


def same(wanted: Any, found: Any) -> bool:
    """Return whether two values of YAML are equal; `true` is not 1, and a date equals its text."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return wanted.keys() == found.keys() and all(same(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        return len(wanted) == len(found) and all(map(same, wanted, found))
    if isinstance(wanted, str) and hasattr(found, "isoformat"):
        return wanted in (found.isoformat(), str(found))
    return bool(wanted == found)


_AGENT = ("selected_agent", "agent", "to")
"""Keys of a decision that name the agent; the first that is there counts."""


def routed_agents(text: str) -> list[str]:
    """Return the agents that a router state names, in order.

    Raises:
        ValueError: the text is no router state; the message says what it is.
    """
    value = yaml_value(text)
    entries = value if isinstance(value, list) else [value]
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise ValueError("is not a router state: expected a mapping or a list of mappings")
    named = ([entry[key] for key in _AGENT if entry.get(key) is not None] for entry in entries)
    return [str(found[0]) for found in named if found]
