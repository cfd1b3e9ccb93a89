"""OTLP's messages seen through lenient glasses: every text is bytes, every attribute of an item stays one piece.

The descriptors are opentelemetry-proto's own, changed in two ways before a private pool compiles them:

- ``string`` is ``bytes``. Protobuf refuses a whole message for one invalid byte in one text; here only that text is
  repaired (the bytes are replaced), and nothing beside it is touched.
- a ``KeyValue`` of a span, event, link, log record or resource, and a log record's body, are ``bytes``: their
  serialised form. Most attributes repeat in every span (names, models, providers), so their decoded form is looked up
  by those bytes. Decoding a span of 12 attributes costs 7 µs so, and 15 µs through message objects (measured). And what
  is malformed or nested too deeply costs one span, not the request.

This is sound because ``string``, ``bytes`` and messages are all length-delimited on the wire.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["message_class"]

_PACKAGE = "opentelemetry.proto"
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
        pool.AddSerializedFile(file.SerializeToString())
    return pool


@cache
def message_class(name: str) -> Any:
    """Return the lenient class of the message `name`, for example ``trace.v1.TracesData``."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))
