"""What stands for a content that an SDK or a Collector left out: as if it had not been recorded (spec: dialects.md, N)."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["MASK", "holds_mask", "is_mask"]

MASK = r"(?i)\*{3,}|(__|\[|<)(redacted|masked|filtered|not serializable)(__|\]|>)|\[scrubbed due to '[^']*'\]"
"""Matches a whole text that is one: ``__REDACTED__``, ``[Filtered]``, ``****``. Inside of a longer text it may be the author's."""

_LONGEST = 60
_matched = re.compile(MASK).fullmatch


def is_mask(text: str) -> bool:
    """Return whether a whole text stands for one that was left out."""
    return len(text) <= _LONGEST and _matched(text) is not None


def holds_mask(value: Any) -> bool:
    """Return whether a text inside of a JSON value was left out."""
    if isinstance(value, str):
        return is_mask(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(holds_mask, inner))
