"""Fields of a JSON object, read as strictly as OTLP asks and as kindly as senders need."""

from __future__ import annotations

import re
from typing import Any

from clawtrace.receiver.payload import BadItemError

__all__ = [
    "an_id",
    "double",
    "enumerated",
    "get",
    "hexadecimal",
    "integer",
    "objects",
    "one_object",
    "severity",
    "text",
    "unsigned",
]

_HEX = re.compile(r"[0-9a-f]*")
_CAPITAL = re.compile("[A-Z]")
_SNAKE: dict[str, str] = {}
_SEVERITIES = {
    f"{word}{step or ''}": 4 * place + max(step, 1)
    for place, word in enumerate(("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"))
    for step in (0, 2, 3, 4)
}


def get(node: dict[str, Any], name: str) -> Any:
    """Return the field `name` (camelCase) of an object, also when it is written in snake_case; None when absent."""
    value = node.get(name)
    if value is not None:
        return value
    snake = _SNAKE.get(name)
    if snake is None:
        snake = _SNAKE[name] = _CAPITAL.sub(lambda match: "_" + match[0].lower(), name)
    return node.get(snake) if snake != name else None


def objects(node: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the list of objects `name`; empty when absent."""
    value = get(node, name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadItemError(f"`{name}` is not a list of objects")
    return value


def one_object(node: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object `name`; empty when absent."""
    value = get(node, name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadItemError(f"`{name}` is not an object")
    return value


def text(node: dict[str, Any], name: str) -> str:
    """Return the text `name`; empty when absent."""
    value = get(node, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadItemError(f"`{name}` is not a text")
    return value


def integer(value: Any, name: str) -> int:
    """Return a 64-bit integer given as number or text; `name` is for the message."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        number = int(value) if isinstance(value, str) else float(value)
        if number != int(number):
            raise ValueError
        return int(number)
    except (TypeError, ValueError, OverflowError):
        raise BadItemError(f"`{name}` is no integer: {str(value)[:24]!r}") from None


def unsigned(node: dict[str, Any], name: str, bits: int = 64) -> int:
    """Return the unsigned integer `name` of at most `bits` bits; 0 when absent."""
    value = get(node, name)
    if value is None:
        return 0
    number = integer(value, name)
    if number < 0 or number.bit_length() > bits:
        raise BadItemError(f"`{name}` does not fit in {bits} unsigned bits: {str(value)[:24]!r}")
    return number


def hexadecimal(node: dict[str, Any], name: str) -> str:
    """Return the hexadecimal text `name` in lower case; empty when absent."""
    value = text(node, name).lower()
    if not _HEX.fullmatch(value):
        raise BadItemError(f"`{name}` is not hexadecimal: {value[:24]!r}")
    return value


def enumerated(node: dict[str, Any], name: str, prefix: str, words: tuple[str, ...]) -> str:
    """Return the word of an enumeration given by number or name (``SPAN_KIND_CLIENT``)."""
    value = get(node, name)
    if isinstance(value, str) and value.startswith(prefix):
        word = value.removeprefix(prefix).capitalize()
        return word if word in words else words[0]
    number = integer(value, name) if value is not None else 0
    return words[number] if 0 <= number < len(words) else words[0]


def double(content: Any) -> float:
    """Return the content of a `doubleValue`: a number, or its text (``NaN``, ``Infinity``)."""
    try:
        return float(content)
    except (TypeError, ValueError, OverflowError):
        raise BadItemError(f"`doubleValue` is no number: {str(content)[:24]!r}") from None


def an_id(node: dict[str, Any], name: str, zero: str) -> str:
    """Return the id `name` of a log record, or empty text for what is no id: OTLP says it then belongs to no trace."""
    value = text(node, name).lower()
    return value if len(value) == len(zero) and value != zero and _HEX.fullmatch(value) else ""


def severity(record: dict[str, Any]) -> int:
    """Return a record's severity, given by number or name (``SEVERITY_NUMBER_INFO2``); 0 is unspecified."""
    value = get(record, "severityNumber")
    if not isinstance(value, str) or value.isdigit():
        return unsigned(record, "severityNumber", 31)
    return _SEVERITIES.get(value.removeprefix("SEVERITY_NUMBER_"), 0)
