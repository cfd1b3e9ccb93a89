"""OTLP in protobuf, by lenient classes: every text is bytes, every attribute of an item stays one piece.

The descriptors are opentelemetry-proto's own, changed in two ways before a private pool compiles them:

- ``string`` is ``bytes``. Protobuf refuses a whole message for one invalid byte in one text; here only that text is
  repaired (the bytes are replaced), and nothing else is touched.
- a ``KeyValue`` of a span, event, link, log record or resource, and a log record's body, are ``bytes``: their
  serialised form. Most attributes repeat in every span (names, models, providers), so their decoded form is looked up
  by those bytes. Decoding a span of 12 attributes costs 7 µs so, and 15 µs through message objects (measured). And what
  is malformed or nested too deeply costs one span, not the request.

This is sound because ``string``, ``bytes`` and messages are all length-delimited on the wire.

And what OTLP 0.15 to 0.19 called instrumentation libraries, field 1000 next to the scopes and of their form, is read.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from clawtrace.receiver.decode.items import (
    MAX_DEPTH,
    NO_SPAN,
    NO_TRACE,
    SPAN_KINDS,
    STATUS_CODES,
    Attributes,
    EventItem,
    GroupItems,
    LinkItem,
    LogItem,
    ScopeItems,
    SpanItem,
    checked_ids,
    double_text,
    finite,
    json_text,
)
from clawtrace.receiver.request import BadItemError, BadPayloadError, Signal

__all__ = ["MESSAGE_PARTS", "ProtobufItems", "groups_of", "message_class"]


class Parts(NamedTuple):
    """The message of a request, and the fields that lead to its items."""

    message: str
    groups: str
    scopes: str
    items: str


MESSAGE_PARTS: dict[Signal, Parts] = {
    "traces": Parts("trace.v1.TracesData", "resource_spans", "scope_spans", "spans"),
    "logs": Parts("logs.v1.LogsData", "resource_logs", "scope_logs", "log_records"),
    "metrics": Parts("metrics.v1.MetricsData", "resource_metrics", "scope_metrics", "metrics"),
}

_PACKAGE = "opentelemetry.proto"
_OLD_SCOPES = 1_000
"""Number of the field that held what scopes hold now; opentelemetry-proto keeps it reserved."""
_WHOLE = {".opentelemetry.proto.common.v1.KeyValue", ".opentelemetry.proto.common.v1.AnyValue"}


def _loosen(message: Any, whole: bool) -> None:
    """Change the fields of a message descriptor, and of those inside of it, as the module says."""
    for field in message.field:
        if field.type == field.TYPE_STRING:
            field.type = field.TYPE_BYTES
        elif field.type_name in _WHOLE and whole:
            field.type = field.TYPE_BYTES
            field.ClearField("type_name")
    for nested in message.nested_type:
        _loosen(nested, whole)


def _restore(message: Any) -> None:
    """Give a `Resource…` message its field of instrumentation libraries again."""
    scopes = next(field for field in message.field if field.name.startswith("scope_"))
    message.ClearField("reserved_range")
    old = message.field.add()
    old.CopyFrom(scopes)
    old.name, old.json_name, old.number = "old_scopes", "oldScopes", _OLD_SCOPES


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool
    from opentelemetry.proto.common.v1 import common_pb2
    from opentelemetry.proto.logs.v1 import logs_pb2
    from opentelemetry.proto.metrics.v1 import metrics_pb2
    from opentelemetry.proto.resource.v1 import resource_pb2
    from opentelemetry.proto.trace.v1 import trace_pb2

    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, trace_pb2, logs_pb2, metrics_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for message in file.message_type:
            _loosen(message, whole=module is not common_pb2)
            if message.name in ("ResourceSpans", "ResourceLogs", "ResourceMetrics"):
                _restore(message)
        pool.AddSerializedFile(file.SerializeToString())
    return pool


@cache
def message_class(name: str) -> Any:
    """Return the lenient class of the message `name`, for example ``trace.v1.TracesData``."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def groups_of(parts: Parts, data: bytes) -> Sequence[Any]:
    """Return the `Resource…` messages of a serialised request, what older senders call its scopes in their place.

    Raises:
        DecodeError: the bytes are no such message.
    """
    groups: Sequence[Any] = getattr(message_class(parts.message).FromString(data), parts.groups)
    for group in groups:
        if not getattr(group, parts.scopes):
            getattr(group, parts.scopes).extend(group.old_scopes)
    return groups


Row = tuple[str, str, str]
"""Key, value as text, type letter of an attribute."""
_KINDS = dict(enumerate(SPAN_KINDS))
_STATUS = dict(enumerate(STATUS_CODES))
_SHORT = 96
_LIMIT = 20_000


def _text(data: bytes) -> str:
    return str(data, "utf-8", "replace")


class ProtobufItems:
    """Reads requests; used by one thread at a time, because it remembers the short attributes it has seen.

    Args:
        clean_bytes: redaction of binary values (as base64 they could no longer be searched).
    """

    def __init__(self, clean_bytes: Callable[[bytes], bytes]) -> None:
        from google.protobuf.message import DecodeError

        self._clean_bytes = clean_bytes
        self._malformed = DecodeError
        self._pair = message_class("common.v1.KeyValue").FromString
        self._value = message_class("common.v1.AnyValue").FromString
        self._known: dict[bytes, Row] = {}

    def groups(self, signal: Signal, content: bytes) -> Iterator[GroupItems]:
        """Yield what a request holds.

        Raises:
            BadPayloadError: the bytes are no such message.
        """
        parts = MESSAGE_PARTS[signal]
        try:
            groups = groups_of(parts, content)
        except self._malformed:
            raise BadPayloadError("the body is not a protobuf message of that kind, or it is truncated") from None
        if content and not groups:
            raise BadPayloadError(f"the body contains no `{parts.groups}`")
        for group in groups:
            scopes = [self._scope(one, getattr(one, parts.items)) for one in getattr(group, parts.scopes)]
            yield GroupItems(group.resource.attributes, _text(group.schema_url), scopes)

    def _scope(self, one: Any, items: Sequence[Any]) -> ScopeItems:
        """Return a scope; attributes of it that cannot be read are left out, as they say nothing about an item."""
        about = one.scope
        try:
            values = self.attributes([pair.SerializeToString() for pair in about.attributes])[0]
        except BadItemError:
            values = {}
        return ScopeItems(_text(about.name), _text(about.version), _text(one.schema_url), values, items)

    def span(self, item: Any) -> SpanItem:
        """Read one span."""
        status = item.status
        return SpanItem(
            *checked_ids(item.trace_id.hex(), item.span_id.hex(), item.parent_span_id.hex()),
            _text(item.trace_state),
            _text(item.name),
            _KINDS.get(item.kind, "Unspecified"),
            item.start_time_unix_nano,
            item.end_time_unix_nano,
            _STATUS.get(status.code, "Unset"),
            _text(status.message),
            item.flags,
            item.dropped_attributes_count,
            item.dropped_events_count,
            item.dropped_links_count,
            self.attributes(item.attributes),
            [EventItem(one.time_unix_nano, _text(one.name), self.attributes(one.attributes)[0]) for one in item.events],
            [
                LinkItem(
                    one.trace_id.hex(), one.span_id.hex(), _text(one.trace_state), self.attributes(one.attributes)[0]
                )
                for one in item.links
            ],
        )

    def log(self, item: Any) -> LogItem:
        """Read one log record; a trace id that is none means "not part of a trace" (opentelemetry-proto's words)."""
        trace, span = item.trace_id.hex(), item.span_id.hex()
        return LogItem(
            item.time_unix_nano or item.observed_time_unix_nano,
            item.observed_time_unix_nano,
            "" if len(trace) != 32 or trace == NO_TRACE else trace,
            "" if len(span) != 16 or span == NO_SPAN else span,
            item.flags,
            _text(item.severity_text),
            max(item.severity_number, 0),
            self._as_text(self._parsed(self._value, item.body, "the body"))[0],
            _text(item.event_name),
            item.dropped_attributes_count,
            self.attributes(item.attributes),
        )

    def points(self, item: Any) -> int:
        """Return how many data points a metric has."""
        which = item.WhichOneof("data")
        return len(getattr(item, which).data_points) if which else 0

    # -- attributes ------------------------------------------------------------------------------------------------

    def attributes(self, given: Sequence[bytes]) -> Attributes:
        """Read serialised attributes. Most repeat in span after span, so short ones are looked up by their bytes."""
        known, read = self._known.get, self._read
        rows = [known(raw) or read(raw) if len(raw) < _SHORT else read(raw) for raw in given]
        values = {key: value for key, value, _ in rows}
        if len(values) == len(rows):
            return values, "".join([row[2] for row in rows])
        # of repeated keys the last one counts
        return values, "".join({key: letter for key, _, letter in rows}.values())

    def _read(self, raw: bytes) -> Row:
        pair = self._parsed(self._pair, raw, "an attribute")
        row = (_text(pair.key), *self._as_text(pair.value))
        if len(raw) < _SHORT:
            if len(self._known) >= _LIMIT:
                self._known.clear()
            self._known[raw] = row
        return row

    def _parsed(self, parse: Callable[[bytes], Any], raw: bytes, what: str) -> Any:
        try:
            return parse(raw)
        except self._malformed:
            raise BadItemError(f"{what} is malformed or nested deeper than {MAX_DEPTH} levels") from None

    def _as_text(self, value: Any) -> tuple[str, str]:
        """Return an `AnyValue` message as text and type letter."""
        which = value.WhichOneof("value")
        if which == "string_value":
            return _text(value.string_value), "s"
        if which == "int_value":
            return str(value.int_value), "i"
        if which == "bool_value":
            return ("true" if value.bool_value else "false"), "b"
        if which == "double_value":
            return double_text(value.double_value), "d"
        if which == "bytes_value":
            return self._plain(value), "y"
        if which in ("array_value", "kvlist_value"):
            return json_text(self._plain(value)), "a" if which == "array_value" else "m"
        return "", "n"

    def _plain(self, value: Any) -> Any:
        """Return an `AnyValue` message as what `json` writes; protobuf has bounded its depth."""
        which = value.WhichOneof("value")
        if which == "array_value":
            return [self._plain(element) for element in value.array_value.values]
        if which == "kvlist_value":
            return {_text(pair.key): self._plain(pair.value) for pair in value.kvlist_value.values}
        if which == "double_value":
            return finite(value.double_value)
        if which == "string_value":
            return _text(value.string_value)
        if which == "bytes_value":
            return base64.b64encode(self._clean_bytes(value.bytes_value)).decode("ascii")
        return getattr(value, which) if which in ("bool_value", "int_value") else None
