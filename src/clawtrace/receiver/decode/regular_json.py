"""Requests of spans as exporters write them in JSON, read in C.

Objects of Python are made only of what is kept: a span is an object with the fields of protobuf's message, an attribute
stays the bytes of its text, so that it is looked up like protobuf's. Here nothing is converted: a field is of the one JSON
type that exporters write. What is not written in the usual way (unknown fields, ``snake_case``, names of enumerations,
halves of characters, an integer with a point, any attribute that makes no sense …) is read by `decode_json`, which
decides what it means and says what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, field
from msgspec.json import Decoder

from clawtrace.receiver.attribution.attribute import ClaimReader
from clawtrace.receiver.decode.attribute_rows import AttributeColumns, AttributeRows, Resource, Row
from clawtrace.receiver.decode.json_fields import JsonAttributes
from clawtrace.receiver.decode.span_columns import SpanColumns
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.receiver.request import BadItemError, BadPayloadError, Decoded

__all__ = ["RegularSpans"]

_HEX = re.compile(r"[0-9a-f]*")
_DIGITS = re.compile(r"[0-9]*")
_LONGEST = 20
"""Digits of the largest 64-bit integer."""
_Enum = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
_UInt64 = int | str
"""`_numbers` makes an integer of it."""


class _Node(Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """An object all of whose fields are known; `gc` is off because it is never part of a cycle."""


class _Event(_Node):
    time_unix_nano: _UInt64 = 0
    name: str = ""
    attributes: list[Raw] = []
    dropped_attributes_count: int = 0


class _Link(_Node):
    trace_id: str = ""
    span_id: str = ""
    trace_state: str = ""
    attributes: list[Raw] = []
    dropped_attributes_count: int = 0
    flags: int = 0


class _Status(_Node):
    message: str = ""
    code: _Enum = 0


class _Span(_Node):
    trace_id: str = ""
    span_id: str = ""
    trace_state: str = ""
    parent_span_id: str = ""
    flags: _UInt32 = 0
    name: str = ""
    kind: _Enum = 0
    start_time_unix_nano: _UInt64 = 0
    end_time_unix_nano: _UInt64 = 0
    attributes: list[Raw] = []
    dropped_attributes_count: _UInt32 = 0
    events: list[_Event] = []
    dropped_events_count: _UInt32 = 0
    links: list[_Link] = []
    dropped_links_count: _UInt32 = 0
    status: _Status = field(default_factory=_Status)


class _JsonScope(Struct):
    """No field of it that is read has two words, so that unknown ones hide nothing."""

    name: str = ""
    version: str = ""


class _ScopeSpans(_Node):
    scope: _JsonScope = field(default_factory=_JsonScope)
    spans: list[_Span] = []
    schema_url: str = ""


class _Resource(Struct):
    """As `_JsonScope`."""

    attributes: list[Raw] = []


class _ResourceSpans(_Node):
    resource: _Resource = field(default_factory=_Resource)
    scope_spans: list[_ScopeSpans] = []
    schema_url: str = ""


class _TracesData(_Node):
    resource_spans: list[_ResourceSpans]


class _Text(Struct, forbid_unknown_fields=True, gc=False):
    """The value of an attribute that is a text."""

    stringValue: str  # noqa: N815 (OTLP's name)


class _TextAttribute(Struct, forbid_unknown_fields=True, gc=False):
    """An attribute that is a text, as most long ones are."""

    key: str
    value: _Text


class _IrregularError(BadPayloadError):
    """A request is not written in the usual way."""


class _RawRows(AttributeRows):
    """Attributes that are parts of a parsed text."""

    def of(self, items: Sequence[Sequence[Any]]) -> AttributeColumns:
        """Decode the attributes of items."""
        return super().of([[*map(bytes, raws)] for raws in items])

    def of_resource(self, raws: Sequence[Any], suspect: bool) -> Resource:
        """Decode the attributes of a resource."""
        return super().of_resource([*map(bytes, raws)], suspect)


class RegularSpans:
    """Decodes requests of spans; used by one thread at a time."""

    def __init__(self, attributes: JsonAttributes, redactor: Redactor, claims: ClaimReader) -> None:
        self._parse = Decoder(_TracesData).decode
        parse_text = Decoder(_TextAttribute).decode

        def row(raw: bytes) -> Row:
            try:
                attribute = parse_text(raw)
            except (ValueError, RecursionError):
                pass
            else:
                return attribute.key, attribute.value.stringValue, "s"
            try:
                pair = json.loads(raw)
                if not isinstance(pair, dict):
                    raise _IrregularError
                made = attributes.row(pair)
                "".join(made).encode()  # not with half a character
            except (BadItemError, ValueError, RecursionError):
                raise _IrregularError from None
            return made

        rows = _RawRows(row, redactor, claims)
        self._columns = SpanColumns(rows, claims, text=str, hexadecimal=str)

    def decode(self, bodies: Sequence[bytes], *, suspect: bool) -> list[Decoded | BadPayloadError]:
        """Decode requests together; a `BadPayloadError` takes the place of one that is not written in the usual way, or is none.

        Args:
            suspect: whether they may contain a secret; resources are cleaned here, the rest by the caller.
        """
        return self._columns.decode(bodies, self._groups, suspect=suspect)

    def _groups(self, data: bytes) -> list[_ResourceSpans]:
        try:
            groups = self._parse(data).resource_spans
            for group in groups:
                _check(group)
        except (ValueError, RecursionError):
            raise _IrregularError from None
        return groups


def _check(group: _ResourceSpans) -> None:
    """Make numbers of times, and raise `_IrregularError` where one is none, or an id has other than lower-case digits."""
    for scope in group.scope_spans:
        spans = scope.spans
        ids = [
            *[span.trace_id for span in spans],
            *[span.span_id for span in spans],
            *[span.parent_span_id for span in spans],
        ]
        starts = _numbers([span.start_time_unix_nano for span in spans])
        ends = _numbers([span.end_time_unix_nano for span in spans])
        for span, start, end in zip(spans, starts, ends, strict=True):
            span.start_time_unix_nano, span.end_time_unix_nano = start, end
            if span.events:
                times = _numbers([event.time_unix_nano for event in span.events])
                for event, time in zip(span.events, times, strict=True):
                    event.time_unix_nano = time
            for link in span.links:
                ids += link.trace_id, link.span_id
        if not _HEX.fullmatch("".join(ids)):
            raise _IrregularError


def _numbers(written: list[_UInt64]) -> list[int]:
    """Return unsigned 64-bit integers that are written as numbers or as texts of digits.

    Raises:
        ValueError: one is written in another way, or out of range.
    """
    texts = [one for one in written if isinstance(one, str)]
    if not _DIGITS.fullmatch("".join(texts)) or max(map(len, texts), default=0) > _LONGEST:
        raise ValueError
    numbers = [*map(int, written)]
    if min(numbers, default=0) < 0 or max(numbers, default=0) >> 64:
        raise ValueError
    return numbers
