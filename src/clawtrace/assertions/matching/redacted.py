"""Recorded texts: redaction marks in them, ``[REDACTED:kind:hash8]`` for each secret (span-model.md §1), and search in results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from clawtrace.assertions.matching.matchers import one_form

__all__ = ["contains", "holds_mark", "marks", "shortest"]

_MARK = re.compile(r"\[REDACTED:(?P<kind>[^\[\]]+?):(?P<hash>[0-9a-f]{8})\]")


def marks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the whole mark of each redacted secret in `text`, in order."""
    for found in _MARK.finditer(text):
        yield found["kind"], found[0]


def holds_mark(text: str) -> bool:
    """Return whether a part of `text` was redacted, so that what stood there is unknown."""
    return _MARK.search(text) is not None


def shortest(text: str) -> int:
    """Return the fewest characters that `text` can have had before its secrets were replaced: each had one or more."""
    return len(_MARK.sub("x", text))


def contains(text: str, part: str) -> bool:
    """Return whether `part` is in a result: in it as it is recorded, or in a text inside of it where it is JSON."""
    text, part = one_form(text), one_form(part)
    if part in text:
        return True
    written = part.isascii() and part.isprintable() and not {'"', "\\", "/"} & set(part)
    if written or text.lstrip()[:1] not in ('"', "{", "["):
        return False  # JSON writes such a part as it is
    try:
        return _is_in(part, json.loads(text))
    except (ValueError, RecursionError):
        return False


def _is_in(part: str, value: Any) -> bool:
    if isinstance(value, str):
        return part in one_form(value)
    if isinstance(value, dict):
        return any(_is_in(part, inner) for inner in value.values())
    return isinstance(value, list) and any(_is_in(part, inner) for inner in value)
