"""Fields of a JSON object, as protobuf's JSON mapping and OTLP's exceptions from it say: the one meaning of every JSON value; attributes last.

Integers and doubles may be numbers or texts (``5``, ``"5"``, ``5.0``, ``"5e0"``), null is the default. What the mapping
does not allow (``" 5"``, ``"0x5"``, ``true`` for a number) is refused, and so are numbers out of range.
https://protobuf.dev/programming-guides/json/ , https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from clawtrace.receiver.decode.items import MAX_DEPTH, double_text, finite, json_text
from clawtrace.receiver.request import BadItemError

__all__ = [
    "an_id",
    "any_value",
    "camel",
    "enumerated",
    "hexadecimal",
    "objects",
    "one_object",
    "severity",
    "text",
    "unsigned",
]

_HEX = re.compile(r"[0-9a-f]*")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?")
_INT32, _INT64 = (-(1 << 31), (1 << 31) - 1), (-(1 << 63), (1 << 63) - 1)
_BEYOND = 100_000_000_000_000_000_000
"""Larger than any 64-bit integer."""
_DIGITS = 20
"""Of the largest; what has fewer fits."""
_BASE64_IDS = (12, 24)
"""Characters of 8 and 16 bytes; the digits of an id of that length would be of another."""
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


_NAMES = (
    "resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "resourceLogs", "scopeLogs",
    "instrumentationLibraryLogs", "resourceMetrics", "scopeMetrics", "instrumentationLibraryMetrics",
    "instrumentationLibrary", "logRecords", "exponentialHistogram", "dataPoints", "schemaUrl", "traceId", "spanId",
    "parentSpanId", "traceState", "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "observedTimeUnixNano",
    "droppedAttributesCount", "droppedEventsCount", "droppedLinksCount", "severityText", "severityNumber", "eventName",
    "stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue",
)  # fmt: skip
_FIELDS = {re.sub("[A-Z]", r"_\g<0>", name).lower(): name for name in _NAMES}
"""Fields of more than one word, by their names in snake_case."""
_SNAKE = frozenset(_FIELDS)
_SEVERITIES = {
    f"{word}{step or ''}": 4 * place + max(step, 1)
    for place, word in enumerate(("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"))
    for step in (0, 2, 3, 4)
}


def camel(node: dict[str, Any]) -> dict[str, Any]:
    """Return an object whose fields are named in camelCase; they may be written in snake_case.

    Raises:
        BadItemError: one is written in both ways, so that one of them would be lost.
    """
    if _SNAKE.isdisjoint(node):
        return node
    named = dict(node)
    for snake, name in _FIELDS.items():
        if named.get(snake) is not None:
            if named.get(name) is not None:
                raise BadItemError(f"`{name}` is given a second time, as `{snake}`")
            named[name] = named[snake]
    return named


def objects(node: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the list of objects `name`; empty when absent."""
    value = node.get(name)
    if value is None:
        return []
    if not (isinstance(value, list) and {*map(type, value)} <= {dict}):
        raise BadItemError(f"`{name}` is not a list of objects")
    return value


def one_object(node: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object `name`; empty when absent."""
    value = node.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadItemError(f"`{name}` is not an object")
    return value


def text(node: dict[str, Any], name: str) -> str:
    """Return the text `name`; empty when absent."""
    value = node.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadItemError(f"`{name}` is not a text")
    return value


def integer(value: Any, name: str, bounds: tuple[int, int] = _INT64) -> int:
    """Return an integer given as number or text, between `bounds`; `name` is for the message."""
    number = _whole_number(value)
    if number is None:
        raise BadItemError(f"`{name}` is not an integer: {_shown(value)}")
    least, most = bounds
    if not least <= number <= most:
        kind = "bits" if least else "unsigned bits"
        raise BadItemError(f"`{name}` does not fit in {(most - least).bit_length()} {kind}: {_shown(value)}")
    return number


def _whole_number(value: Any) -> int | None:
    """Return an integer given as number or text, None for anything else; of a very large one only that it is large."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if not (isinstance(value, str) and _NUMBER.fullmatch(value)):
        return None
    if len(value) < _DIGITS and value.isdigit():
        return int(value)
    number = Decimal(value)
    if abs(number) >= _BEYOND:
        return _BEYOND if number > 0 else -_BEYOND
    return int(number) if number == number.to_integral_value() else None


def _shown(value: Any) -> str:
    return repr(str(value)[:24])


def unsigned(node: dict[str, Any], name: str, bits: int = 64) -> int:
    """Return the unsigned integer `name` of at most `bits` bits; 0 when absent."""
    value = node.get(name)
    if value is None:
        return 0
    if bits == 64 and type(value) is str and value.isascii() and value.isdigit() and len(value) < _DIGITS:
        return int(value)  # as exporters write times
    return integer(value, name, (0, (1 << bits) - 1))


def hexadecimal(node: dict[str, Any], name: str) -> str:
    """Return the id `name` as hexadecimal digits in lower case; empty when absent."""
    value = text(node, name)
    if not _HEX.fullmatch(value) and not _HEX.fullmatch(value := _digits(value)):
        raise BadItemError(f"`{name}` is not hexadecimal: {value[:24]!r}")
    return value


def enumerated(node: dict[str, Any], name: str, prefix: str, words: tuple[str, ...]) -> str:
    """Return the word of an enumeration given by number or name (``SPAN_KIND_CLIENT``)."""
    value = node.get(name)
    if isinstance(value, str) and value.startswith(prefix):
        word = value.removeprefix(prefix).capitalize()
        return word if word in words else words[0]
    number = integer(value, name, _INT32) if value is not None else 0
    return words[number] if 0 <= number < len(words) else words[0]


def double(content: Any) -> float:
    """Return the content of a `doubleValue`: a number, or its text (``NaN``, ``Infinity``)."""
    if isinstance(content, str):
        readable = content in _NOT_FINITE or _NUMBER.fullmatch(content) is not None
    else:
        readable = isinstance(content, int | float) and not isinstance(content, bool)
    if not readable:
        raise BadItemError(f"`doubleValue` is not a number: {_shown(content)}")
    try:
        return float(content)
    except OverflowError:
        return math.inf if content > 0 else -math.inf


def boolean(content: Any) -> bool:
    """Return the content of a `boolValue`: a truth value, or its text."""
    if isinstance(content, bool):
        return content
    if content not in ("true", "false"):
        raise BadItemError(f"`boolValue` is neither true nor false: {_shown(content)}")
    return bool(content == "true")


def _digits(written: str) -> str:
    """Return an id in lower case, and as digits where it is base64, as protobuf's own mapping writes bytes (Grafana Tempo)."""
    if len(written) in _BASE64_IDS and written.endswith("="):
        try:
            return base64.b64decode(written, validate=True).hex()
        except binascii.Error:
            pass
    return written.lower()


def an_id(node: dict[str, Any], name: str, zero: str) -> str:
    """Return the id `name` of a log record, or empty text for what is no id: OTLP says it then belongs to no trace."""
    value = _digits(text(node, name))
    return value if len(value) == len(zero) and value != zero and _HEX.fullmatch(value) else ""


def severity(record: dict[str, Any]) -> int:
    """Return a record's severity, given by number or name (``SEVERITY_NUMBER_INFO2``); 0 is unspecified."""
    value = record.get("severityNumber")
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return unsigned(record, "severityNumber", 31)
    return _SEVERITIES.get(value.removeprefix("SEVERITY_NUMBER_"), 0)


_URL_SAFE = str.maketrans("-_", "+/")
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue")
_LETTERS = {"stringValue": "s", "bytesValue": "y"}


def any_value(value: Any, clean_bytes: Callable[[bytes], bytes]) -> tuple[str, str]:
    """Return an `AnyValue` object as text and type letter.

    Raises:
        BadItemError: it makes no sense, or is nested too deeply.
    """
    which, content = _which(value)
    if which == "intValue":
        return str(integer(content, which)), "i"
    if which == "doubleValue":
        return double_text(double(content)), "d"
    if which == "boolValue":
        return ("true" if boolean(content) else "false"), "b"
    plain = _plain(value, 0, clean_bytes)
    if which in ("arrayValue", "kvlistValue"):
        return json_text(plain), "a" if which == "arrayValue" else "m"
    return plain or "", _LETTERS.get(which, "n")


def _plain(value: Any, depth: int, clean_bytes: Callable[[bytes], bytes]) -> Any:
    """Return an `AnyValue` object as what `json` writes."""
    if depth > MAX_DEPTH:
        raise BadItemError(f"an attribute is nested deeper than {MAX_DEPTH} levels")
    which, content = _which(value)
    if which == "stringValue":
        return text({which: content}, which)
    if which == "boolValue":
        return boolean(content)
    if which == "intValue":
        return integer(content, which)
    if which == "doubleValue":
        return finite(double(content))
    if which == "bytesValue":
        return base64.b64encode(clean_bytes(_bytes(text({which: content}, which)))).decode("ascii")
    if which == "arrayValue":
        return [_plain(element, depth + 1, clean_bytes) for element in objects(content, "values")]
    if which == "kvlistValue":
        pairs = objects(content, "values")
        return {text(pair, "key"): _plain(pair.get("value"), depth + 1, clean_bytes) for pair in pairs}
    return None


def _bytes(written: str) -> bytes:
    """Return what base64 text holds; the URL-safe alphabet is accepted."""
    try:
        return base64.b64decode(written.translate(_URL_SAFE) + "=" * (-len(written) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise BadItemError(f"`bytesValue` is not base64: {written[:24]!r}") from None


def _which(value: Any) -> tuple[str, Any]:
    """Return which value of an `AnyValue` is set, and its content; empty when none is."""
    if value is None:
        return "", None
    if not isinstance(value, dict):
        raise BadItemError("an attribute's value is not an object")
    given = [(name, content) for name, content in camel(value).items() if name in _VALUES and content is not None]
    if len(given) > 1:
        raise BadItemError(f"an attribute's value is both `{given[0][0]}` and `{given[1][0]}`")
    name, content = given[0] if given else ("", None)
    if name in ("arrayValue", "kvlistValue") and not isinstance(content, dict):
        raise BadItemError(f"`{name}` is not an object")
    return name, content
