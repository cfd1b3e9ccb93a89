"""Recorded OTLP on disk: which requests a file holds, recognised by content and not by name.

JSON: one object, JSON lines, objects one after the other (pretty-printed or not), or an array of objects. Protobuf: one
request, or a stream of requests each preceded by its length (a varint, or four bytes big-endian as the Collector's
file exporter writes). Either may be gzipped. An object may be an API's answer that holds a request, or of another tool's form
(`decode/foreign_forms.py`), whose spans are gathered into requests (`imports/`).
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from clawtrace.errors import InputError
from clawtrace.receiver.decode.json_reader import parse_json, unrepeated, whole_characters
from clawtrace.receiver.decode.sniff import JSON_KEYS, document_signals, protobuf_signal, unwrapped
from clawtrace.receiver.request import BadPayloadError, Signal

if TYPE_CHECKING:
    from clawtrace.receiver.decode.foreign_forms import ForeignForm
    from clawtrace.receiver.recordings.imports.foreign_spans import ForeignSpan

__all__ = ["ForeignRows", "ForeignTraceError", "NotOtlpError", "RecordedRequest", "read_recording"]

_GZIP, _ZSTD, _BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"
_HEAD = 64 * 1024
_OTLP_KEY = re.compile(rb'(?<!\\)"(?:' + "|".join(JSON_KEYS).encode() + rb')"\s*:')
_SPANS_A_REQUEST = 1000
"""The most spans of one request made of another tool's spans."""
_MOST_AT_ONCE = 1 << 30
"""Bytes of JSON that is not written line by line; reading it takes many times as much memory."""
_KEYS = "`resourceSpans`, `resourceLogs` or `resourceMetrics`"
_BETWEEN = re.compile(r"[\s,]*")
_EMPTY_NAME = re.compile(r"(^-|\.(json|jsonl|ndjson|otlp|pb|binpb|bin)(\.gz)?)$", re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_PROTOBUF_HINT = re.compile(rb"service\.name|telemetry\.sdk")
_DUCKDB = b"DUCK"
"""At the ninth byte of a DuckDB file."""


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
    form: ForeignForm | None = None
    """The other tool's form that it was written in; None for OTLP."""


def read_recording(name: str, content: IO[bytes]) -> Iterator[RecordedRequest]:
    """Yield the requests of one recording.

    Args:
        name: what messages call it; a recording without any content is one only by its name (``.jsonl``, ``.pb`` …).
        content: a binary stream at its beginning.

    Raises:
        NotOtlpError: the content is no OTLP; raised before the first request.
        InputError: it is OTLP and damaged; the message says where.
    """
    # Standard input cannot seek, and its beginning is looked at.
    stream: io.BufferedReader[Any] = io.BufferedReader(cast(Any, content), _HEAD)
    start = stream.peek(4)[:4]
    try:
        if start == _ZSTD:
            raise NotOtlpError("it is compressed with zstd, which is not read; decompress it or use gzip")
        zipped = start.startswith(_GZIP)
        yield from _requests(name, io.BufferedReader(gzip.GzipFile(fileobj=stream), _HEAD) if zipped else stream)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"`{name}`: the gzip stream is damaged or truncated ({error})") from None
    finally:
        stream.detach()  # else it would be closed with its reader


def _requests(name: str, stream: io.BufferedReader[Any]) -> Iterator[RecordedRequest]:
    head = stream.peek(_HEAD)
    text = head.removeprefix(_BOM).lstrip()
    if not text and len(head) < _HEAD:
        if not _EMPTY_NAME.search(name):
            raise NotOtlpError("it is empty")
        return
    hinted = _OTLP_KEY.search(head) is not None
    # a length or tag of protobuf may well be a brace; JSON has no such bytes
    binary = _CONTROL.search(head) is not None
    if text[:1] in (b"{", b"[") and (hinted or not binary):
        yield from _JsonReader(name, hinted=hinted).read(stream)
    elif binary:
        yield from _protobuf_requests(name, stream.read())
    else:
        raise NotOtlpError("it is text, but not JSON")


def _no_otlp(row: object) -> str:
    """Return which JSON is no OTLP: an answer without traces, such as `{"message": "Unauthorized"}`, is known by its keys."""
    from clawtrace.support.figures import listed

    found = listed([f"`{key[:40]}`" for key in row], most=4) if isinstance(row, dict) else ""
    return f"this JSON has {f'{found}, and not' if found else 'none of the keys'} {_KEYS}"


class _JsonReader:
    """Reads JSON line by line as long as lines are whole objects, and the rest as one text."""

    def __init__(self, name: str, *, hinted: bool) -> None:
        self._name = name
        self._hinted = hinted
        """Whether there is a key of OTLP near the beginning, so that what cannot be parsed is damaged."""
        self._found = False
        """Whether a request of OTLP was read."""
        self._foreign: ForeignRows | None = None
        """Of another tool, once something of one was met."""

    def read(self, stream: io.BufferedReader[Any]) -> Iterator[RecordedRequest]:
        """Yield the requests."""
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            if len(line) > _MOST_AT_ONCE:
                raise self._too_large()
            try:
                document = parse_json(line)
            except BadPayloadError:
                document = None
            if not isinstance(document, dict):
                rest = line + stream.read(_MOST_AT_ONCE)
                if len(rest) > _MOST_AT_ONCE:
                    raise self._too_large()
                yield from self._values(rest, number)
                break
            yield from self._recorded(document, line, number)
        if self._foreign:
            yield from self._foreign.rest()

    def _values(self, rest: bytes, first_line: int) -> Iterator[RecordedRequest]:
        """Yield the requests of a text of JSON values; `first_line` is where it begins in the file."""
        text = rest.removeprefix(_BOM).decode("utf-8", "replace")
        decoder = json.JSONDecoder(object_pairs_hook=unrepeated)
        position, counted, line = self._skip(text, 0), 0, first_line
        while position < len(text):
            line, counted = line + text.count("\n", counted, position), position
            try:
                value, end = decoder.raw_decode(text, position)
            except json.JSONDecodeError as error:
                line += text.count("\n", position, error.pos)
                cut = error.msg.startswith("Unterminated") or not text[error.pos :].strip()
                why = "the JSON is not closed: was the file cut off?" if cut else error.msg
                raise self._damage(f"line {line}, column {error.colno}: {why}") from None
            except (ValueError, RecursionError) as error:
                raise self._damage(f"line {line}: {error}") from None
            body = text[position:end].encode()
            value = whole_characters(value, body)
            for document in value if isinstance(value, list) else [value]:
                yield from self._recorded(document, None if isinstance(value, list) else body, line)
            position = self._skip(text, end)

    @staticmethod
    def _skip(text: str, position: int) -> int:
        between = _BETWEEN.match(text, position)
        return between.end() if between else position

    def _recorded(self, document: Any, body: bytes | None, line: int) -> Iterator[RecordedRequest]:
        """Yield the requests of one object, which may be one of several signals."""
        document = unwrapped(document)
        signals = document_signals(document)
        if signals and not self._foreign:
            self._found = True
            body = body or json.dumps(document).encode()
            for signal in signals:
                yield RecordedRequest(signal, body, document, f"line {line}", is_json=True)
        elif self._found:
            from clawtrace.receiver.decode.foreign_forms import foreign_form

            raise self._damage(f"line {line}: {foreign_form(document) or f'this JSON has no {_KEYS}'}")
        else:
            self._foreign = self._foreign or ForeignRows(self._name)
            yield from self._foreign.add(document, f"line {line}")

    def _too_large(self) -> InputError:
        return InputError(
            f"`{self._name}` holds one JSON value of more than 1 GiB; write one object per line, as `jq -c '.[]'` does: "
            "such a file is read line by line"
        )

    def _damage(self, problem: str) -> Exception:
        """Return the error: damage where the file is of traces, else the reason why it is not."""
        known = self._found or self._hinted or self._foreign
        return InputError(f"`{self._name}` {problem}") if known else NotOtlpError(problem)


class ForeignRows:
    """Gathers the spans of a file that another tool wrote into requests."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.form: ForeignForm | None = None
        """That of the first object; None before it."""
        self._spans: list[ForeignSpan] = []
        self._place = ""

    def add(self, document: Any, place: str) -> Iterator[RecordedRequest]:
        """Take an object of the tool, a list of them or an answer of its API; yield a request when there is enough for it.

        Raises:
            NotOtlpError: the first object has no form that is read.
            InputError: a later one has another form, or one cannot be read.
        """
        from clawtrace.receiver.decode.foreign_forms import foreign_rows, has_more
        from clawtrace.receiver.recordings.imports.foreign_spans import BadRowError, spans_of

        for form, row in foreign_rows(document):
            if self.form is None and (form is None or not form.reader):
                raise ForeignTraceError(form.sentence) if form else NotOtlpError(f"{place}: {_no_otlp(row)}")
            if form is None or self.form not in (None, form):
                found = "OTLP" if document_signals(row) else form.name if form else "another JSON object"
                began = self.form.name if self.form else ""
                raise InputError(
                    f"`{self._name}` {place}: this is {found} in a file that began with {began}; a file has one form: split it"
                )
            self.form, self._place = form, place
            try:
                self._spans += spans_of(form.reader, row)
            except BadRowError as problem:
                raise InputError(
                    f"`{self._name}` {place}: {form.name}: {problem}; export it again, or take that object out"
                ) from None
            if len(self._spans) >= _SPANS_A_REQUEST:
                yield from self.rest()
        if has_more(document):
            raise InputError(
                f"`{self._name}` {place}: this is one page of an answer that has more; fetch the rest, and join the lists into one file"
            )

    def rest(self) -> Iterator[RecordedRequest]:
        """Yield what is left as a request."""
        from clawtrace.receiver.recordings.imports.foreign_spans import request_of

        if self._spans:
            body, self._spans = request_of(self._spans), []
            yield RecordedRequest("traces", body, None, self._place, is_json=True, form=self.form)


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
    if data[8:12] == _DUCKDB:
        raise ForeignTraceError("it is a store; give it with --store")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NotOtlpError("it is UTF-16, as some shells of Windows write it; save it as UTF-8")
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
