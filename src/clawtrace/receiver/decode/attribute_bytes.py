"""Serialised attributes (`KeyValue`) to key, text and type letter."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import lru_cache
from struct import unpack_from
from typing import Any

from clawtrace.receiver.decode.attribute_rows import Row
from clawtrace.receiver.decode.values import MAX_DEPTH, double_text, finite, json_text
from clawtrace.receiver.decode.wire import message_class
from clawtrace.receiver.request import BadItemError

__all__ = ["AttributeReader"]

_KEY, _VALUE, _LENGTH_DELIMITED = 0x0A, 0x12, 0x0A
_BOOL, _INT, _DOUBLE = 0x10, 0x18, 0x21
_NO_TEXT = b"\xff"
"""Begins no value: no text has that length."""
_UINT64 = (1 << 64) - 1


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the varint at `position` and the position after it; IndexError where there is none."""
    value = shift = 0
    while shift < 64:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _UINT64, position
        shift += 7
    raise IndexError


def _varint_of(value: int) -> bytes:
    """Return `value` as a varint."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)


@lru_cache(4_096)
def _text_header(count: int) -> bytes:
    """Return how a value of `count` bytes begins when it is a text: to compare takes a third of the time to read it."""
    for text in range(max(count - 12, 0), count):
        inner = bytes((_LENGTH_DELIMITED,)) + _varint_of(text)
        header = bytes((_VALUE,)) + _varint_of(len(inner) + text) + inner
        if len(header) + text == count:
            return header
    return _NO_TEXT


def _read_scalar(raw: bytes, end: int) -> tuple[str, str] | None:
    """Decode a number or truth value, which follows a key that ends at `end`; None for any other form."""
    length, start = _varint(raw, end + 1)
    if start + length != len(raw) or length < 2:
        return None
    tag = raw[start]
    text, letter, after = "", "", start
    if tag == _INT:
        value, after = _varint(raw, start + 1)
        text, letter = str(value - (1 << 64) if value >> 63 & 1 else value), "i"
    elif tag == _BOOL:
        value, after = _varint(raw, start + 1)
        text, letter = ("true" if value else "false"), "b"
    elif tag == _DOUBLE and length == 9:
        text, letter, after = double_text(unpack_from("<d", raw, start + 1)[0]), "d", len(raw)
    return (text, letter) if after == len(raw) else None


def _parse(name: str, raw: bytes, what: str) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return message_class(name).FromString(raw)
    except DecodeError:
        raise BadItemError(f"{what} is malformed or nested deeper than {MAX_DEPTH} levels") from None


class AttributeReader:
    """Decodes serialised attributes.

    Args:
        clean_bytes: redaction of binary values (as base64 they could no longer be searched).
    """

    def __init__(self, clean_bytes: Callable[[bytes], bytes]) -> None:
        self._clean_bytes = clean_bytes

    def read(self, raw: bytes) -> Row:
        """Decode one serialised `KeyValue`, most of which are a key and then a scalar value, nothing else.

        Raises:
            BadItemError: it is malformed or nested deeper than protobuf reads (100 messages).
        """
        try:
            end = raw[1] + 2
            if raw[0] == _KEY and raw[1] < 128 and raw[end] == _VALUE:
                header = _text_header(len(raw) - end)
                if raw.startswith(header, end):
                    value = raw[end + len(header) :].decode("utf-8", "replace")
                    return raw[2:end].decode("utf-8", "replace"), value, "s"
                plain = _read_scalar(raw, end)
                if plain is not None:
                    return raw[2:end].decode("utf-8", "replace"), *plain
        except IndexError:
            pass
        return self._read_any(raw)

    def _read_any(self, raw: bytes) -> Row:
        """Decode any `KeyValue` through protobuf."""
        pair = _parse("common.v1.KeyValue", raw, "an attribute")
        return str(pair.key, "utf-8", "replace"), *self._text(pair.value)

    def body(self, raw: bytes) -> str:
        """Decode one serialised `AnyValue`, a log record's body.

        Raises:
            BadItemError: it is malformed or nested too deeply.
        """
        return self._text(_parse("common.v1.AnyValue", raw, "the body"))[0] if raw else ""

    def _text(self, value: Any) -> tuple[str, str]:
        which = value.WhichOneof("value")
        if which == "string_value":
            return str(value.string_value, "utf-8", "replace"), "s"
        if which == "bool_value":
            return ("true" if value.bool_value else "false"), "b"
        if which == "int_value":
            return str(value.int_value), "i"
        if which == "double_value":
            return double_text(value.double_value), "d"
        if which == "array_value":
            return json_text(self._plain(value)), "a"
        if which == "kvlist_value":
            return json_text(self._plain(value)), "m"
        if which == "bytes_value":
            return base64.b64encode(self._clean_bytes(value.bytes_value)).decode("ascii"), "y"
        return "", "n"

    def _plain(self, value: Any) -> Any:
        """Return an `AnyValue` message as what `json` writes; protobuf has bounded its depth."""
        which = value.WhichOneof("value")
        if which == "array_value":
            return [self._plain(element) for element in value.array_value.values]
        if which == "kvlist_value":
            return {str(p.key, "utf-8", "replace"): self._plain(p.value) for p in value.kvlist_value.values}
        if which == "double_value":
            return finite(value.double_value)
        if which == "string_value":
            return str(value.string_value, "utf-8", "replace")
        if which == "bytes_value":
            return self._text(value)[0]
        return getattr(value, which) if which in ("bool_value", "int_value") else None
