"""Decode requests of any encoding into redacted columns."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from clawtrace.model.raw import LogBatch, MapColumn, SpanBatch
from clawtrace.receiver.attribution.attribute import Claim, ClaimReader
from clawtrace.receiver.decode.items import (
    Attributes,
    Decoded,
    LogItem,
    ScopeItems,
    Section,
    SpanItem,
    append,
)
from clawtrace.receiver.decode.json_reader import JsonItems, parse_json
from clawtrace.receiver.decode.sniff import JSON_KEYS, document_signals, protobuf_signal
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.receiver.request import BadItemError, BadPayloadError, Request, Signal

if TYPE_CHECKING:
    from clawtrace.receiver.decode.protobuf import ProtobufItems

__all__ = ["RequestDecoder"]


class RequestDecoder:
    """Decodes requests; used by one thread at a time, because it caches attributes."""

    def __init__(self, redactor: Redactor, claims: ClaimReader) -> None:
        self._redactor = redactor
        self._claims = claims
        self._json = JsonItems(redactor.clean_bytes)

    @cached_property
    def _protobuf(self) -> ProtobufItems:
        from clawtrace.receiver.decode.protobuf import ProtobufItems

        return ProtobufItems(self._redactor.clean_bytes)

    def decode(self, request: Request) -> Decoded:
        """Decode one request.

        Raises:
            BadPayloadError: it will never be accepted.
        """
        suspect = self._redactor.suspects(request.body)
        if request.json:
            document = request.document
            if document is None:
                document = parse_json(request.body)
                _check_document(request.signal, document)
            decoded = self._read(self._json, request.signal, document, suspect)
        else:
            decoded = self._from_protobuf(request, suspect)
        if suspect:
            rejected, decoded.rejected = decoded.rejected, Counter()
            for (claim, reason), items in rejected.items():
                decoded.rejected[claim, self._redactor.clean(reason)] += items
        return decoded

    def columns(self, signal: Signal, decoded: Decoded, dropped: Collection[int]) -> SpanBatch | LogBatch:
        """Return the spans or log records of a request as columns, redacted; those that the receiver fills in are still empty.

        Args:
            dropped: places of those that are left out.
        """
        batch = SpanBatch() if signal == "traces" else LogBatch()
        place = 0
        for section in decoded.sections:
            items = section.items
            kept = [item for number, item in enumerate(items, place) if number not in dropped] if dropped else items
            append(batch, kept, section)
            place += len(items)
        if decoded.suspect:
            _redact(batch, self._redactor.clean_all)
        return batch

    def _from_protobuf(self, request: Request, suspect: bool) -> Decoded:
        """Decode a request in protobuf; the error names the signal if the body is one of another signal."""
        signal, body = request.signal, request.body
        try:
            decoded = self._read(self._protobuf, signal, body, suspect)
        except BadPayloadError:
            _check_signal(signal, protobuf_signal(body))
            raise
        if signal == "metrics":
            doubtful = not decoded.points.total() and bool(body)
        else:
            nothing_good = not decoded.claims and bool(decoded.rejected)
            doubtful = nothing_good or (
                signal == "logs" and not all(one.time_ns for section in decoded.sections for one in section.items)
            )
        if doubtful:
            _check_signal(signal, protobuf_signal(body))
        return decoded

    def _read(self, reader: JsonItems | ProtobufItems, signal: Signal, content: Any, suspect: bool) -> Decoded:
        decoded = Decoded(suspect)
        for group in reader.groups(signal, content):
            try:
                resource, claim = self._resource(reader, group.resource, suspect)
            except BadItemError as problem:
                if signal != "metrics":
                    lost = [_without(Claim(), given) for scope in group.scopes for given in scope.items]
                    decoded.rejected.update((claim, f"resource: {problem}") for claim in lost)
                    continue
                resource, claim = ({}, ""), Claim()
            for scope in group.scopes:
                if signal == "metrics":
                    decoded.points[claim] += sum(map(reader.points, scope.items))
                else:
                    read: Callable[[Any], SpanItem | LogItem] = reader.span if signal == "traces" else reader.log
                    items = self._items(read, scope, claim, decoded)
                    decoded.sections.append(Section(items, resource, group.schema, scope))
        return decoded

    def _resource(self, reader: JsonItems | ProtobufItems, given: Any, suspect: bool) -> tuple[Attributes, Claim]:
        """Return the attributes of a resource, redacted if they are `suspect`, and its claim about the run."""
        values, letters = reader.attributes(given)
        claim = self._claims.of_resource(values)
        if suspect:
            values = {key: self._redactor.clean(value) for key, value in values.items()}
        return (values, letters), claim

    def _items(
        self, read: Callable[[Any], SpanItem | LogItem], scope: ScopeItems, base: Claim, decoded: Decoded
    ) -> list[Any]:
        """Return the valid spans or log records; the others are counted."""
        items = []
        for given in scope.items:
            try:
                item = read(given)
            except BadItemError as problem:
                decoded.rejected[_without(base, given), str(problem)] += 1
                continue
            items.append(item)
            links = tuple([link.trace_id for link in item.links]) if isinstance(item, SpanItem) and item.links else ()
            decoded.claims.append(self._claim(base, item.attributes[0], links))
        return items

    def _claim(self, base: Claim, values: dict[str, str], links: tuple[str, ...]) -> Claim:
        said = tuple([(key, values[key]) for key in self._claims.keys if key in values])
        return self._claims.of_item(base, said, links) if said or links else base


def _without(base: Claim, given: Any) -> Claim:
    """Return the claim of a rejected span or log record: its resource's, and its trace."""
    trace = given.get("traceId", given.get("trace_id")) if isinstance(given, dict) else given.trace_id.hex()
    if not isinstance(trace, str) or len(trace) != 32 or not trace.strip("0"):
        return base
    return base._replace(trace=trace.lower())


def _check_document(signal: Signal, document: Any) -> None:
    """Check that a JSON document is a request of this signal.

    Raises:
        BadPayloadError: it is something else, or more than that.
    """
    found = document_signals(document)
    if document and not found:
        from clawtrace.receiver.decode.foreign_forms import foreign_form

        none = f"the JSON body contains none of {', '.join(sorted(JSON_KEYS))}"
        raise BadPayloadError(foreign_form(document) or none)
    if found and signal not in found:
        _check_signal(signal, found[0])
    if others := [one for one in document_signals(document, filled=True) if one != signal]:
        signals = " and ".join([signal, *others])
        raise BadPayloadError(f"the body contains {signals}; a request has one signal, sent to the path of that signal")


def _check_signal(signal: Signal, found: Signal | None) -> None:
    if found and found != signal:
        raise BadPayloadError(f"the body contains {found}, not {signal}; send it to `/v1/{found}`")


def _redact(batch: SpanBatch | LogBatch, clean_all: Callable[[list[str]], None]) -> None:
    """Clean every column in which a secret may be; the values of resources were, where they were decoded."""
    for column in _secret_columns(batch):
        clean_all(column)
    for map_column in _map_columns(batch):
        _make_distinct(map_column)


def _secret_columns(batch: SpanBatch | LogBatch) -> Iterator[list[Any]]:
    for column in _map_columns(batch):
        yield column.keys
        if column is not batch.resource:
            yield column.values
    yield batch.scope
    yield batch.scope_version
    if isinstance(batch, SpanBatch):
        yield batch.name
        yield batch.status_message
        yield batch.trace_state
        yield batch.event_names.values
        yield batch.link_states.values
    else:
        yield batch.body
        yield batch.resource_schema
        yield batch.scope_schema
        yield batch.event_name
        yield batch.severity_text


def _map_columns(batch: SpanBatch | LogBatch) -> list[MapColumn]:
    columns = [batch.resource, batch.attributes, batch.scope_attributes]
    if isinstance(batch, SpanBatch):
        columns += [batch.event_attributes.maps, batch.link_attributes.maps]
    return columns


def _make_distinct(column: MapColumn) -> None:
    """Number the keys of a row that became equal when they were changed: one equal pair fails a whole commit."""
    keys = column.keys
    for start, end in zip(column.offsets, column.offsets[1:], strict=False):
        seen = set(keys[start:end])
        if len(seen) == end - start:
            continue
        seen.clear()
        for place in range(start, end):
            numbers = itertools.count(2)
            key = keys[place]
            while key in seen:
                key = f"{keys[place]}~{next(numbers)}"
            seen.add(key)
            keys[place] = key
