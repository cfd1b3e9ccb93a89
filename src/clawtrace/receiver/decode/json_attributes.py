"""Attributes in OTLP JSON: a key and an `AnyValue` object, to key, text and type letter."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from clawtrace.receiver.decode.attribute_rows import Row
from clawtrace.receiver.decode.json_fields import boolean, double, get, integer, objects, text
from clawtrace.receiver.decode.values import MAX_DEPTH, double_text, finite, json_text
from clawtrace.receiver.payload import BadItemError

__all__ = ["JsonAttributes"]

_URL_SAFE = str.maketrans("-_", "+/")
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue")
_LETTERS = {"stringValue": "s", "intValue": "i", "bytesValue": "y"}


class JsonAttributes:
    """Reads attributes that were parsed.

    Args:
        clean_bytes: redaction of binary values (as base64 they could no longer be searched).
    """

    def __init__(self, clean_bytes: Callable[[bytes], bytes]) -> None:
        self._clean_bytes = clean_bytes

    def row(self, pair: dict[str, Any]) -> Row:
        """Decode one `KeyValue` object.

        Raises:
            BadItemError: it makes no sense, or is nested too deeply.
        """
        key, value = text(pair, "key"), get(pair, "value")
        plain = value.get("stringValue") if isinstance(value, dict) and len(value) == 1 else None
        return (key, plain, "s") if isinstance(plain, str) else (key, *self.value(value))

    def value(self, value: Any) -> tuple[str, str]:
        """Return an `AnyValue` object as text and type letter.

        Raises:
            BadItemError: it makes no sense, or is nested too deeply.
        """
        which, content = _which(value)
        if which in ("arrayValue", "kvlistValue"):
            return json_text(self._plain(value, 0)), "a" if which == "arrayValue" else "m"
        if which == "doubleValue":
            return double_text(double(content)), "d"
        plain = self._plain(value, 0)
        if which == "boolValue":
            return ("true" if plain else "false"), "b"
        return ("" if plain is None else str(plain)), _LETTERS.get(which, "n")

    def _plain(self, value: Any, depth: int) -> Any:
        """Return an `AnyValue` object as what `json` writes."""
        if depth > MAX_DEPTH:
            raise BadItemError(f"an attribute is nested deeper than {MAX_DEPTH} levels")
        which, content = _which(value)
        if which == "stringValue":
            return text(value, which)
        if which == "boolValue":
            return boolean(content)
        if which == "intValue":
            return integer(content, which)
        if which == "doubleValue":
            return finite(double(content))
        if which == "bytesValue":
            return self._base64(text(value, which))
        if which == "arrayValue":
            return [self._plain(element, depth + 1) for element in objects(content, "values")]
        if which == "kvlistValue":
            pairs = objects(content, "values")
            return {text(pair, "key"): self._plain(get(pair, "value"), depth + 1) for pair in pairs}
        return None

    def _base64(self, written: str) -> str:
        """Return base64 text in its standard form, what it holds redacted; the URL-safe alphabet is accepted."""
        try:
            data = base64.b64decode(written.translate(_URL_SAFE) + "=" * (-len(written) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise BadItemError(f"`bytesValue` is not base64: {written[:24]!r}") from None
        return base64.b64encode(self._clean_bytes(data)).decode("ascii")


def _which(value: Any) -> tuple[str, Any]:
    """Return which value of an `AnyValue` is set, and its content; empty when none is."""
    if value is None:
        return "", None
    if not isinstance(value, dict):
        raise BadItemError("an attribute's value is not an object")
    only = next(iter(value)) if len(value) == 1 else None
    names = (only,) if only in _VALUES else _VALUES
    given = [(name, content) for name in names if (content := get(value, name)) is not None]
    if len(given) > 1:
        raise BadItemError(f"an attribute's value is both `{given[0][0]}` and `{given[1][0]}`")
    name, content = given[0] if given else ("", None)
    if name in ("arrayValue", "kvlistValue") and not isinstance(content, dict):
        raise BadItemError(f"`{name}` is not an object")
    return name, content
