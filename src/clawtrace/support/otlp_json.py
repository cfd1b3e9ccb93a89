"""Requests, attributes and values as OTLP's JSON writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

__all__ = ["any_value", "pairs", "request"]

_INT64 = 1 << 63


def request(
    signal: Literal["Spans", "Logs"], items: Iterable[tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]]
) -> dict[str, Any]:
    """Return a request, in which the items of one resource and scope come together.

    Args:
        items: spans or log records, each after the attributes of its resource and its scope.
    """
    listed = "spans" if signal == "Spans" else "logRecords"
    groups: dict[str, dict[str, Any]] = {}
    for resource, scope, item in items:
        group = groups.setdefault(
            json.dumps((resource, scope)),
            {"resource": {"attributes": resource}, f"scope{signal}": [{"scope": scope, listed: []}]},
        )
        group[f"scope{signal}"][0][listed].append(item)
    return {f"resource{signal}": list(groups.values())}


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
