"""JSON that every reader accepts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["json_text"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: Any) -> str:
    """Return `value` as indented JSON that every reader accepts.

    Numbers that are not finite become their names, as in OTLP's JSON; a lone surrogate (from a JSON escape in an
    argument, or a file name that is no UTF-8) has no UTF-8 form and becomes its escape.
    """
    text = json.dumps(_json(value), indent=2, ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _json(value: Any) -> Any:
    """Return `value` as JSON can carry it."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    if is_dataclass(value):
        return {item.name: _json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_json(item) for item in value]
    return str(value)
