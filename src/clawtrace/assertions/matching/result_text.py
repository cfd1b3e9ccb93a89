"""Search a tool's result for a text: results are often JSON, in which quotes and line ends are escaped."""

from __future__ import annotations

import json
from typing import Any

from clawtrace.assertions.matching.matchers import one_form

__all__ = ["contains"]


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
