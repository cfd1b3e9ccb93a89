"""Requests of spans as exporters write them in JSON, read in C.

Objects of Python are made only of what is kept: a span is an object with the fields of protobuf's message, an attribute
stays the bytes of its text, so that it is looked up like protobuf's. What is not written in the usual way (unknown fields,
``snake_case``, names of enumerations, halves of characters, an integer out of range …) is read by `decode_json`,
which also says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, field
from msgspec.json import Decoder

from clawtrace.receiver.attribute_rows import AttributeRows, Attributes, Said
from clawtrace.receiver.claims import ClaimReader
from clawtrace.receiver.json_attributes import JsonAttributes
from clawtrace.receiver.payload import Decoded
from clawtrace.receiver.redact import Redactor
from clawtrace.receiver.span_columns import SpanColumns

__all__ = ["RegularSpans"]

_HEX = re.compile(r"[0-9a-f]*")
_UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
_UInt64 = Annotated[int, Meta(ge=0)]
"""Its upper bound is beyond what the library checks; `RegularSpans` does."""


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
    code: int = 0


class _Span(_Node):
    trace_id: str = ""
    span_id: str = ""
    trace_state: str = ""
    parent_span_id: str = ""
    flags: _UInt32 = 0
    name: str = ""
    kind: int = 0
    start_time_unix_nano: _UInt64 = 0
    end_time_unix_nano: _UInt64 = 0
    attributes: list[Raw] = []
    dropped_attributes_count: _UInt32 = 0
    events: list[_Event] = []
    dropped_events_count: _UInt32 = 0
    links: list[_Link] = []
    dropped_links_count: _UInt32 = 0
    status: _Status = field(default_factory=_Status)


class _Scope(Struct):
    """No field of it that is read has two words, so that unknown ones hide nothing."""

    name: str = ""
    version: str = ""


class _ScopeSpans(_Node):
    scope: _Scope = field(default_factory=_Scope)
    spans: list[_Span] = []
    schema_url: str = ""


class _Resource(Struct):
    """As `_Scope`."""

    attributes: list[Raw] = []


class _ResourceSpans(_Node):
    resource: _Resource = field(default_factory=_Resource)
    scope_spans: list[_ScopeSpans] = []
    schema_url: str = ""


class _TracesData(_Node):
    resource_spans: list[_ResourceSpans]


class _RawRows(AttributeRows):
    """Attributes that are parts of a parsed text."""

    def of(self, raws: Iterable[Any]) -> tuple[Attributes, Said]:
        """Decode the attributes of one item."""
        return super().of(map(bytes, raws))


class _IrregularError(ValueError):
    """A request is not written in the usual way."""


class RegularSpans:
    """Decodes requests of spans; used by one thread at a time."""

    def __init__(self, attributes: JsonAttributes, redactor: Redactor, claims: ClaimReader) -> None:
        self._parse = Decoder(_TracesData, strict=False).decode
        parse_attribute = Decoder(dict[str, Any]).decode
        rows = _RawRows(lambda raw: attributes.row(parse_attribute(raw)), redactor, claims)
        self._columns = SpanColumns(rows, claims, text=str, hexadecimal=str)

    def decode(self, data: bytes, *, suspect: bool) -> Decoded | None:
        """Decode one request; None where it is not written in the usual way, or is none.

        Args:
            data: its text.
            suspect: whether a secret may stand in it; resources are cleaned here, the rest by the caller.
        """
        decoded = Decoded()
        try:
            for group in self._parse(data).resource_spans:
                _check(group)
                self._columns.append(group, decoded, suspect=suspect)
        except (ValueError, RecursionError):
            return None
        return decoded


def _check(group: _ResourceSpans) -> None:
    """Raise `_IrregularError` where an id has other than lower-case digits, or a time has more than 64 bits."""
    for scope in group.scope_spans:
        spans = scope.spans
        ids = [
            *[span.trace_id for span in spans],
            *[span.span_id for span in spans],
            *[span.parent_span_id for span in spans],
        ]
        times = [*[span.start_time_unix_nano for span in spans], *[span.end_time_unix_nano for span in spans]]
        for span in spans:
            if span.events:
                times += [event.time_unix_nano for event in span.events]
            for link in span.links:
                ids += link.trace_id, link.span_id
        if not _HEX.fullmatch("".join(ids)) or max(times, default=0) >> 64:
            raise _IrregularError
