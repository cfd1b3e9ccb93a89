"""Recorded OTLP on disk: which requests a file holds, recognised by content and not by name.

JSON: one object, JSON lines, objects one after the other (pretty-printed or not), or an array of objects. Protobuf: one
request, or a stream of requests each preceded by its length (a varint, or four bytes big-endian as the Collector's
file exporter writes). Either may be gzipped. An object may be an API's answer that holds a request (`decode/sniff.py`).
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from clawtrace.errors import InputError
from clawtrace.receiver.decode.json_reader import parse_json, whole_characters
from clawtrace.receiver.decode.sniff import JSON_KEYS, document_signals, foreign_form, protobuf_signal, unwrapped
from clawtrace.receiver.request import BadPayloadError, Signal

__all__ = ["ForeignTraceError", "NotOtlpError", "RecordedRequest", "read_recording"]

_GZIP, _ZSTD, _BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"
_HEAD = 64 * 1024
_OTLP_KEY = re.compile(rb'(?<!\\)"(?:' + "|".join(JSON_KEYS).encode() + rb')"\s*:')
_KEYS = "`resourceSpans`, `resourceLogs` or `resourceMetrics`"
_BETWEEN = re.compile(r"[\s,]*")
_EMPTY_NAME = re.compile(r"(^-|\.(json|jsonl|ndjson|otlp|pb|binpb|bin)(\.gz)?)$", re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_PROTOBUF_HINT = re.compile(rb"service\.name|telemetry\.sdk")


class NotOtlpError(Exception):
    """The content is no OTLP; the text says what was found instead."""


class ForeignTraceError(NotOtlpError):
    """The content is traces in another form; the text names it and says what to do."""


class RecordedRequest(NamedTuple):
    """One request of a recording."""

    signal: Signal
    body: bytes
    document: Any
    """The parsed JSON; None for protobuf, and where the decoder is to parse it."""
    place: str
    """Its position, for messages: ``line 3``, ``message 2``."""
    is_json: bool


class _Looker(io.RawIOBase):
    """A stream as raw input, so that its beginning can be looked at (standard input cannot seek)."""

    def __init__(self, content: IO[bytes] | gzip.GzipFile) -> None:
        self._content = content

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._content.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def read_recording(name: str, content: IO[bytes]) -> Iterator[RecordedRequest]:
    """Yield the requests of one recording.

    Args:
        name: what messages call it; a recording without any content is one only by its name (``.jsonl``, ``.pb`` …).
        content: a binary stream at its beginning.

    Raises:
        NotOtlpError: the content is no OTLP; raised before the first request.
        InputError: it is OTLP and damaged; the message says where.
    """
    stream = io.BufferedReader(_Looker(content), _HEAD)
    start = stream.peek(4)[:4]
    if start.startswith(_GZIP):
        stream = io.BufferedReader(_Looker(gzip.GzipFile(fileobj=stream)), _HEAD)
    elif start == _ZSTD:
        raise NotOtlpError("it is compressed with zstd, which is not read; decompress it or use gzip")
    try:
        yield from _requests(name, stream)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"`{name}`: the gzip stream is damaged or truncated ({error})") from None


def _requests(name: str, stream: io.BufferedReader[_Looker]) -> Iterator[RecordedRequest]:
    head = stream.peek(_HEAD)
    text = head.removeprefix(_BOM).lstrip()
    if not text and len(head) < _HEAD:
        if not _EMPTY_NAME.search(name):
            raise NotOtlpError("it is empty")
        return
    hinted = _OTLP_KEY.search(head) is not None
    binary = (
        _CONTROL.search(head) is not None
    )  # a length or tag of protobuf may well be a brace; JSON has no such bytes
    if text[:1] in (b"{", b"[") and (hinted or not binary):
        yield from _JsonReader(name, hinted=hinted).read(stream)
    elif binary:
        yield from _protobuf_requests(name, stream.read())
    else:
        raise NotOtlpError("it is text, but not JSON")


class _JsonReader:
    """Reads JSON line by line as long as lines are whole objects, and the rest as one text."""

    def __init__(self, name: str, *, hinted: bool) -> None:
        self._name = name
        self._hinted = hinted
        """Whether there is a key of OTLP near the beginning, so that what cannot be parsed is damaged."""
        self._found = False
        """Whether a request was read."""

    def read(self, stream: io.BufferedReader[_Looker]) -> Iterator[RecordedRequest]:
        """Yield the requests."""
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                document = parse_json(line)
            except BadPayloadError:
                document = None
            if not isinstance(document, dict):
                yield from self._values(line + stream.read(), number)
                return
            yield from self._recorded(document, line, number)

    def _values(self, rest: bytes, first_line: int) -> Iterator[RecordedRequest]:
        """Yield the requests of a text of JSON values; `first_line` is where it begins in the file."""
        text = rest.removeprefix(_BOM).decode("utf-8", "replace")
        decoder = json.JSONDecoder()
        position, counted, line = self._skip(text, 0), 0, first_line
        while position < len(text):
            line, counted = line + text.count("\n", counted, position), position
            try:
                value, end = decoder.raw_decode(text, position)
            except json.JSONDecodeError as error:
                line += text.count("\n", position, error.pos)
                raise self._damage(
                    f"line {line}, column {error.colno}: {error.msg}", self._found or self._hinted
                ) from None
            except (ValueError, RecursionError) as error:
                raise self._damage(f"line {line}: {error}", self._found or self._hinted) from None
            for document in value if isinstance(value, list) else [value]:
                body = json.dumps(document).encode() if isinstance(value, list) else text[position:end].encode()
                yield from self._recorded(whole_characters(document, body), body, line)
            position = self._skip(text, end)

    @staticmethod
    def _skip(text: str, position: int) -> int:
        between = _BETWEEN.match(text, position)
        return between.end() if between else position

    def _recorded(self, document: Any, body: bytes, line: int) -> Iterator[RecordedRequest]:
        """Yield the requests of one object, which may be one of several signals."""
        document = unwrapped(document)
        signals = document_signals(document)
        if not signals:
            foreign = foreign_form(document)
            if foreign and not self._found:
                raise ForeignTraceError(foreign)
            raise self._damage(f"line {line}: {foreign or f'this JSON has no {_KEYS}'}", self._found)
        self._found = True
        for signal in signals:
            yield RecordedRequest(signal, body, document, f"line {line}", is_json=True)

    def _damage(self, problem: str, otlp: bool) -> Exception:
        """Return the error: damage where the file is OTLP, else the reason why it is none."""
        return InputError(f"`{self._name}` {problem}") if otlp else NotOtlpError(problem)


def _protobuf_requests(name: str, data: bytes) -> Iterator[RecordedRequest]:
    # A request has one field, so it begins with its tag. A length before it may read as another field, and hide what follows.
    signal = protobuf_signal(data) if data.startswith(b"\n") else None
    if signal is not None:
        yield RecordedRequest(signal, data, None, "message 1", is_json=False)
        return
    for length in (_varint_length, _four_byte_length):
        if _first_signal(data, length) is not None:
            yield from _framed(name, data, length)
            return
    if _PROTOBUF_HINT.search(data[:_HEAD]):
        raise InputError(f"`{name}` looks like OTLP protobuf, but is damaged or truncated")
    raise NotOtlpError("it is neither JSON nor OTLP protobuf")


def _varint_length(data: bytes, position: int) -> tuple[int, int]:
    """Return the length at `position` and where its message begins; IndexError when there is none."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise IndexError


def _four_byte_length(data: bytes, position: int) -> tuple[int, int]:
    if position + 4 > len(data):
        raise IndexError
    return int.from_bytes(data[position : position + 4], "big"), position + 4


def _first_signal(data: bytes, length: Any) -> Signal | None:
    """Return the signal of the first message of a stream, None when that is none."""
    try:
        size, start = length(data, 0)
    except IndexError:
        return None
    return protobuf_signal(data[start : start + size]) if 0 < size <= len(data) - start else None


def _framed(name: str, data: bytes, length: Any) -> Iterator[RecordedRequest]:
    """Yield the messages of a length-delimited stream."""
    position, number = 0, 0
    while position < len(data):
        number += 1
        try:
            size, start = length(data, position)
        except IndexError:
            raise InputError(f"`{name}` message {number} (byte {position}): its length is cut short") from None
        position = start + size
        if position > len(data):
            missing = position - len(data)
            raise InputError(f"`{name}` message {number} (byte {start}): {missing} of its {size} bytes are missing")
        signal = protobuf_signal(data[start:position])
        if signal is not None:
            yield RecordedRequest(signal, data[start:position], None, f"message {number}", is_json=False)
        elif size:
            raise InputError(f"`{name}` message {number} (byte {start}) is not an OTLP request with content")
