"""Lenient protobuf classes of OTLP: every text is bytes, every attribute of an item stays one piece.

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

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from clawtrace.receiver.request import Signal

__all__ = ["MESSAGE_PARTS", "Parts", "groups_of", "message_class"]


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
