"""OTLP protobuf to columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from clawtrace.model.raw import LogBatch
from clawtrace.receiver.attribution.attribute import Claim, ClaimReader
from clawtrace.receiver.decode.attribute_bytes import AttributeReader
from clawtrace.receiver.decode.attribute_rows import AttributeRows
from clawtrace.receiver.decode.span_columns import SpanColumns, repeat
from clawtrace.receiver.decode.values import NO_SPAN, NO_TRACE
from clawtrace.receiver.decode.wire import MESSAGE_PARTS, groups_of
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.receiver.request import BadItemError, BadPayloadError, Decoded, Signal

__all__ = ["ProtobufDecoder"]


def _text(data: bytes) -> str:
    return str(data, "utf-8", "replace")


def _groups(signal: Signal, data: bytes) -> Sequence[Any]:
    """Return the `Resource…` messages of a request.

    Raises:
        BadPayloadError: the bytes are no such message.
    """
    from google.protobuf.message import DecodeError

    parts = MESSAGE_PARTS[signal]
    try:
        groups = groups_of(parts, data)
    except DecodeError:
        raise BadPayloadError("the body is not a protobuf message of that kind, or it is truncated") from None
    if data and not groups:
        raise BadPayloadError(f"the body contains no `{parts.groups}`")
    return groups


class ProtobufDecoder:
    """Decodes requests; used by one thread at a time, because it remembers attributes it has seen."""

    def __init__(self, redactor: Redactor, claims: ClaimReader) -> None:
        self._claims = claims
        self._reader = AttributeReader(redactor.clean_bytes)
        self._attributes = AttributeRows(self._reader.read, redactor, claims)
        self._spans = SpanColumns(self._attributes, claims, text=_text, hexadecimal=bytes.hex)

    def spans(self, bodies: Sequence[bytes], *, suspect: bool) -> list[Decoded | BadPayloadError]:
        """Decode requests of spans together.

        Args:
            bodies: an ``ExportTraceServiceRequest`` each, which on the wire is a ``TracesData``.
            suspect: whether they may contain a secret; resources are cleaned here, the rest by the caller.

        Returns:
            Each request, or why its bytes are none; all rows are in one batch.
        """
        return self._spans.decode(bodies, lambda data: _groups("traces", data), suspect=suspect)

    def decode(self, signal: Signal, data: bytes, *, suspect: bool) -> Decoded | BadPayloadError:
        """Decode one request of log records or metrics; see `spans`."""
        decoded = Decoded()
        try:
            groups = _groups(signal, data)
        except BadPayloadError as problem:
            return problem
        for group in groups:
            if signal == "logs":
                self._resource_logs(group, decoded, suspect)
            else:
                self._resource_metrics(group, decoded)
        return decoded

    # -- logs ------------------------------------------------------------------------------------------------------

    def _resource_logs(self, group: Any, decoded: Decoded, suspect: bool) -> None:
        try:
            resource = self._attributes.of_resource(group.resource.attributes, suspect)
        except BadItemError as problem:
            count = sum(len(scope.log_records) for scope in group.scope_logs)
            decoded.rejected[Claim(), f"resource: {problem}"] += count
            return
        batch = decoded.logs
        for scope in group.scope_logs:
            records = self._accepted_logs(scope.log_records, resource.claim, decoded)
            if records:
                _log_columns(batch, records)
                repeat(batch, len(records), resource, _text(scope.scope.name), _text(scope.scope.version))
                self._schemas(batch, len(records), group.schema_url, scope)

    def _schemas(self, batch: LogBatch, count: int, resource_schema: bytes, scope: Any) -> None:
        """Append what the records of a scope share in addition to what spans share; attributes that cannot be read are left out."""
        batch.resource_schema += [_text(resource_schema)] * count
        batch.scope_schema += [_text(scope.schema_url)] * count
        try:
            said = self._attributes.of([[one.SerializeToString() for one in scope.scope.attributes]])
        except BadItemError:
            said = self._attributes.of([[]])
        column = batch.scope_attributes
        for _ in range(count):
            column.keys += said.keys
            column.values += said.values
            column.offsets.append(len(column.keys))

    def _accepted_logs(self, records: Iterable[Any], claim: Claim, decoded: Decoded) -> list[Any]:
        accepted: list[Any] = []
        batch = decoded.logs
        for record in records:
            try:
                attributes = self._attributes.of([record.attributes])
                body = self._reader.body(record.body)
            except BadItemError as bad:
                decoded.rejected[claim, str(bad)] += 1
                continue
            column = batch.attributes
            column.keys += attributes.keys
            column.values += attributes.values
            column.offsets.append(len(column.keys))
            batch.attribute_types += attributes.letters
            batch.body.append(body)
            said = dict(attributes.said[0])
            decoded.claims.append(self._claims.of_item(claim, said) if said else claim)
            accepted.append(record)
        return accepted

    # -- metrics ---------------------------------------------------------------------------------------------------

    def _resource_metrics(self, group: Any, decoded: Decoded) -> None:
        try:
            claim = self._attributes.of_resource(group.resource.attributes, suspect=False).claim
        except BadItemError:
            claim = Claim()
        for scope in group.scope_metrics:
            for metric in scope.metrics:
                which = metric.WhichOneof("data")
                decoded.points[claim] += len(getattr(metric, which).data_points) if which else 0


def _log_columns(batch: LogBatch, records: list[Any]) -> None:
    """Append the fields of `records` whose attributes and body are in already.

    A trace id that is no trace id means "not part of a trace" (opentelemetry-proto's words); the record is kept.
    """
    batch.time_ns += [record.time_unix_nano or record.observed_time_unix_nano for record in records]
    batch.observed_ns += [record.observed_time_unix_nano for record in records]
    traces, spans = [record.trace_id.hex() for record in records], [record.span_id.hex() for record in records]
    batch.trace_id += ["" if len(trace) != 32 or trace == NO_TRACE else trace for trace in traces]
    batch.span_id += ["" if len(span) != 16 or span == NO_SPAN else span for span in spans]
    batch.flags += [record.flags for record in records]
    batch.severity_text += [_text(record.severity_text) for record in records]
    batch.severity_number += [max(record.severity_number, 0) for record in records]
    batch.event_name += [_text(record.event_name) for record in records]
    batch.dropped_attributes += [record.dropped_attributes_count for record in records]
