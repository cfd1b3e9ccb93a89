"""Attributes and values as OTLP's JSON writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["any_value", "pairs"]

_INT64 = 1 << 63


def pairs(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes; those that are None are left out."""
    return [{"key": str(key), "value": any_value(value)} for key, value in values.items() if value is not None]


def any_value(value: Any) -> dict[str, Any]:
    """Return a JSON value as an `AnyValue`; a number that the protocol cannot hold becomes its text."""
    match value:
        case None:
            return {}
        case bool():
            return {"boolValue": value}
        case int() if -_INT64 <= value < _INT64:
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value if math.isfinite(value) else str(value)}
        case list():
            return {"arrayValue": {"values": [any_value(one) for one in value]}}
        case dict():
            return {
                "kvlistValue": {"values": [{"key": str(key), "value": any_value(one)} for key, one in value.items()]}
            }
    return {"stringValue": str(value)}
