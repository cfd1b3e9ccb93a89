"""Redaction marks in recorded texts: ``[REDACTED:kind:hash8]`` replaces a secret (span-model.md §1)."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["holds_mark", "marks", "shortest"]

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
