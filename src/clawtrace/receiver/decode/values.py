"""Attribute values as text, enumerations and ids, the same for every protocol.

Scalars read as the Collector writes them (pcommon's ``Value.AsString``): shortest decimal digits, ``true``/``false``,
base64. Arrays and maps are compact JSON in the order sent.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from clawtrace.receiver.request import BadItemError

__all__ = [
    "MAX_DEPTH",
    "NO_SPAN",
    "NO_TRACE",
    "SPAN_KINDS",
    "STATUS_CODES",
    "checked_ids",
    "double_text",
    "finite",
    "json_text",
]

NO_TRACE = "0" * 32
NO_SPAN = "0" * 16

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

SPAN_KINDS = ("Unspecified", "Internal", "Server", "Client", "Producer", "Consumer")
STATUS_CODES = ("Unset", "Ok", "Error")


def checked_ids(trace_id: str, span_id: str, parent_id: str) -> tuple[str, str, str]:
    """Return the ids of a span (lower-case hex).

    A parent of zeros is no parent; one of another length is refused, because the tree cannot be built from it.

    Raises:
        BadItemError: they cannot be told from those of others.
    """
    if len(trace_id) != 32 or len(span_id) != 16 or trace_id == NO_TRACE or span_id == NO_SPAN:
        for what, value, zero in (("trace id", trace_id, NO_TRACE), ("span id", span_id, NO_SPAN)):
            if not value:
                raise BadItemError(f"the {what} is missing")
            if len(value) != len(zero):
                raise BadItemError(f"the {what} has {len(value) // 2} bytes instead of {len(zero) // 2}")
            if value == zero:
                raise BadItemError(f"the {what} is zero")
    if parent_id and len(parent_id) != 16:
        raise BadItemError(f"the parent span id has {len(parent_id) // 2} bytes instead of 8")
    return trace_id, span_id, "" if parent_id == NO_SPAN else parent_id


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
    return _COMPACT.encode(value)
