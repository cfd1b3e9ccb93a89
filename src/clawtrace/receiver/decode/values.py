"""Attribute values as text, the same for every protocol.

Scalars read as the Collector writes them (pcommon's ``Value.AsString``): shortest decimal digits, ``true``/``false``,
base64. Arrays and maps are compact JSON in the order sent.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

__all__ = ["MAX_DEPTH", "double_text", "finite", "json_text"]

MAX_DEPTH = 100
"""Deepest nesting of an attribute's value that is read."""


def double_text(value: float) -> str:
    """Return `value` in its shortest form: no trailing ``.0``, an exponent only beyond 1e-6 and 1e21."""
    if not math.isfinite(value):
        return str(finite(value))
    text = repr(value)
    if text.endswith(".0"):
        return text[:-2]
    if "e" not in text:
        return text
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(text), "f")
    mantissa, exponent = text.split("e")
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].lstrip('0')}"


def finite(value: float) -> float | str:
    """Return `value`, or protobuf's JSON word for what JSON cannot write (``NaN``, ``Infinity``, ``-Infinity``)."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def json_text(value: Any) -> str:
    """Return a list or dict as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
