"""Which attributes of a span are news: of a namespace that its dialect reads, and named neither by a rule nor by a recording.

A new release of an instrumentation that renames an attribute is noticed so, before a fact is missed. What recordings carry
and no rule reads stands in ``unread_attributes.yaml``, by dialect, which `tests/facts/verified.py` writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import translate
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from clawtrace.dialects.load import Dialect, load_dialects
from clawtrace.support.yaml_reading import read_yaml

__all__ = ["RECORDED", "unknown_attributes", "unread_attributes"]

RECORDED = Path(__file__).parent / "unread_attributes.yaml"
"""By dialect, the attributes that recordings carry and no rule reads."""

_KEYS = frozenset(("key", "present", "absent", "json_object", "differs_from", "shorter_than", "plus", "minus"))
"""The words of rules that name attributes."""

_NO_ATTRIBUTES = frozenset(("span", "log"))
"""What stands before the dot of `span.name` and `log.body`, which are no attributes."""

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")
_USERS_OWN = re.compile(r"(^|\.)(metadata|properties|tags?|arguments?|headers)\.")
"""Below these a program's own words stand: association properties, metadata, arguments."""


class _ReadKeys(NamedTuple):
    """What the rules of a dialect read."""

    keys: frozenset[str]
    globs: re.Pattern[str]
    """Fits the attributes that patterns name."""
    prefixes: tuple[str, ...]
    """Of messages that stand in many attributes."""
    namespaces: frozenset[str]
    """What stands before the first dot."""


def unknown_attributes(dialect: Dialect, keys: Iterable[str]) -> list[str]:
    """Return those attributes that neither a rule of the dialect names nor any recording carries, sorted.

    Numbers in a key are `N`. Only namespaces are looked at that the dialect reads and that are no general ones, as ``http``.
    """
    return [key for key in unread_attributes(dialect, keys) if key not in _recorded()]


def unread_attributes(dialect: Dialect, keys: Iterable[str]) -> list[str]:
    """Return those attributes of the namespaces which a dialect reads that no rule of it names, sorted."""
    read = _read(dialect)
    return sorted(
        {
            _NUMBER.sub("N", key)
            for key in keys
            if key.partition(".")[0] in read.namespaces
            and not (key in read.keys or read.globs.fullmatch(key))
            and not key.startswith(read.prefixes)
            and not _USERS_OWN.search(key)
        }
    )


@lru_cache(maxsize=256)
def _read(dialect: Dialect) -> _ReadKeys:
    named = _named(dialect.file)
    prefixes = tuple(rule.prefix for rule in dialect.file.messages if rule.prefix is not None)
    globs = re.compile("|".join(translate(key) for key in sorted(named) if "*" in key) or r"(?!)")
    return _ReadKeys(named, globs, prefixes, _namespaces(named) - _general())


@cache
def _recorded() -> frozenset[str]:
    """Return what recordings of any dialect carry and no rule of it reads: what one writes today is no news of another."""
    return frozenset(key for keys in read_yaml(RECORDED.read_bytes()).values() for key in keys)


@cache
def _general() -> frozenset[str]:
    """Return the namespaces of the dialect of last resort, which reads the spans of any library."""
    return _namespaces(_named(load_dialects()[-1].file))


def _namespaces(keys: Iterable[str]) -> frozenset[str]:
    return frozenset(key.partition(".")[0] for key in keys if "." in key) - _NO_ATTRIBUTES


def _named(rules: object) -> frozenset[str]:
    """Return the attributes of spans that rules name."""
    return frozenset(key.removeprefix("parent.") for keys in _words(rules) for key in keys.split("|"))


def _words(rules: object) -> Iterator[str]:
    if isinstance(rules, BaseModel) and getattr(rules, "event", None) is None:  # else it reads an attribute of an event
        for word in type(rules).model_fields:
            said = getattr(rules, word)
            if word in _KEYS:
                yield from [said] if isinstance(said, str) else said or ()
            elif word == "prefix" and said is not None:
                yield said
            elif word != "events":
                yield from _words(said)
    elif isinstance(rules, list | tuple | dict):
        for rule in rules.values() if isinstance(rules, dict) else rules:
            yield from _words(rule)
