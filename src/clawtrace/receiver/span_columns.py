"""Spans that were parsed by a library into objects with the fields of OTLP's messages, to columns.

Columns are filled one after the other over all spans of a scope: a list comprehension over one field costs a
fifth of appending row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, compress
from typing import Any

from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, SpanBatch, StrList
from clawtrace.receiver.attribute_rows import AttributeRows, Attributes, Said
from clawtrace.receiver.claims import Claim, ClaimReader
from clawtrace.receiver.ids import NO_SPAN, NO_TRACE, SPAN_KINDS, STATUS_CODES, span_id_problem
from clawtrace.receiver.payload import BadItemError, Decoded

__all__ = ["SpanColumns", "repeat"]

_KINDS = dict(enumerate(SPAN_KINDS))
_STATUS = dict(enumerate(STATUS_CODES))
_Ids = tuple[list[str], list[str], list[str]]
"""Of each span the trace id, span id and parent span id, in hexadecimal digits."""


class SpanColumns:
    """Appends spans to the columns of a request.

    Args:
        attributes: decodes attributes.
        claims: reads what spans say about their run.
        text: makes a text of a field of text.
        hexadecimal: makes lower-case hexadecimal digits of an id.
    """

    def __init__(
        self,
        attributes: AttributeRows,
        claims: ClaimReader,
        *,
        text: Callable[[Any], str],
        hexadecimal: Callable[[Any], str],
    ) -> None:
        self._attributes = attributes
        self._claims = claims
        self._text = text
        self._hexadecimal = hexadecimal

    def append(self, group: Any, decoded: Decoded, *, suspect: bool) -> None:
        """Append all spans of a `ResourceSpans` that make sense; the others are counted, with the reason."""
        try:
            resource, claim = self._attributes.of_resource(group.resource.attributes, suspect)
        except BadItemError as problem:
            decoded.rejected[Claim(), f"resource: {problem}"] += sum(len(scope.spans) for scope in group.scope_spans)
            return
        for scope in group.scope_spans:
            # A list, because protobuf makes objects of spans anew each time they are asked for and nobody holds them.
            spans, ids = self._identified(list(scope.spans), claim, decoded)
            spans, ids = self._variable(spans, ids, claim, decoded)
            if spans:
                self._fixed(decoded.spans, spans, ids)
                about = scope.scope
                repeat(decoded.spans, len(spans), resource, self._text(about.name), self._text(about.version))

    def _identified(self, spans: Sequence[Any], claim: Claim, decoded: Decoded) -> tuple[Sequence[Any], _Ids]:
        """Return the spans that can be told from others, with their ids."""
        written = self._hexadecimal
        traces = [written(span.trace_id) for span in spans]
        own = [written(span.span_id) for span in spans]
        parents = [written(span.parent_span_id) for span in spans]
        if (
            {*map(len, traces)} <= {32}
            and {*map(len, own)} <= {16}
            and {*map(len, parents)} <= {0, 16}
            and NO_TRACE not in traces
            and NO_SPAN not in own
        ):
            return spans, (traces, own, parents)
        problems = list(map(span_id_problem, traces, own, parents))
        for problem in filter(None, problems):
            decoded.rejected[claim, problem] += 1
        return _kept(spans, (traces, own, parents), [not problem for problem in problems])

    def _variable(self, spans: Sequence[Any], ids: _Ids, claim: Claim, decoded: Decoded) -> tuple[Sequence[Any], _Ids]:
        """Append what each span has any number of, and return the spans in which all of it makes sense."""
        batch = decoded.spans
        column, letters = batch.attributes, batch.attribute_types
        claims: dict[Said, Claim] = {(): claim}
        attributes = self._attributes.of
        events, links = [span.events for span in spans], [span.links for span in spans]
        good: list[bool] = []
        for span, own_events, own_links in zip(spans, events, links, strict=True):
            try:
                (keys, values, types), said = attributes(span.attributes)
                targets = self._events_and_links(own_events, own_links, batch) if own_events or own_links else ()
            except BadItemError as bad:
                decoded.rejected[claim, str(bad)] += 1
                good.append(False)
                continue
            good.append(True)
            column.keys += keys
            column.values += values
            column.offsets.append(len(column.keys))
            letters.append(types)
            own = claims.get(said)
            if own is None or targets:
                own = self._claims.of_item(claim, dict(said), targets)
                if not targets:
                    claims[said] = own
            decoded.claims.append(own)
        if not all(good):
            spans, ids = _kept(spans, ids, good)
            events, links = list(compress(events, good)), list(compress(links, good))
        _close(events, batch.event_times, batch.event_names, batch.event_attributes)
        _close(links, batch.link_trace_ids, batch.link_span_ids, batch.link_states, batch.link_attributes)
        return spans, ids

    def _events_and_links(self, events: Sequence[Any], links: Sequence[Any], batch: SpanBatch) -> tuple[str, ...]:
        """Append a span's events and links once all of them could be decoded; return the traces linked to."""
        attributes, text, hexadecimal = self._attributes.of, self._text, self._hexadecimal
        of_events = [attributes(event.attributes)[0] for event in events]
        of_links = [attributes(link.attributes)[0] for link in links]
        _append(batch.event_times, [event.time_unix_nano for event in events])
        _append(batch.event_names, [text(event.name) for event in events])
        _append_maps(batch.event_attributes.maps, of_events)
        targets = tuple(hexadecimal(link.trace_id) for link in links)
        _append(batch.link_trace_ids, list(targets))
        _append(batch.link_span_ids, [hexadecimal(link.span_id) for link in links])
        _append(batch.link_states, [text(link.trace_state) for link in links])
        _append_maps(batch.link_attributes.maps, of_links)
        return targets

    def _fixed(self, batch: SpanBatch, spans: Sequence[Any], ids: _Ids) -> None:
        """Append the ids and plain fields of spans whose attributes, events and links are in already."""
        text = self._text
        traces, own, parents = ids
        batch.trace_id += traces
        batch.span_id += own
        batch.parent_span_id += ["" if parent == NO_SPAN else parent for parent in parents]
        batch.trace_state += [text(span.trace_state) for span in spans]
        batch.name += [text(span.name) for span in spans]
        batch.kind += [_KINDS.get(span.kind, "Unspecified") for span in spans]
        batch.start_ns += [span.start_time_unix_nano for span in spans]
        batch.end_ns += [span.end_time_unix_nano for span in spans]
        status = [span.status for span in spans]
        batch.status_code += [_STATUS.get(one.code, "Unset") for one in status]
        batch.status_message += [text(one.message) for one in status]
        batch.flags += [span.flags for span in spans]
        batch.dropped_attributes += [span.dropped_attributes_count for span in spans]
        batch.dropped_events += [span.dropped_events_count for span in spans]
        batch.dropped_links += [span.dropped_links_count for span in spans]


def _kept(spans: Sequence[Any], ids: _Ids, good: Sequence[bool]) -> tuple[list[Any], _Ids]:
    traces, own, parents = (list(compress(column, good)) for column in ids)
    return list(compress(spans, good)), (traces, own, parents)


def _close(items: Sequence[Sequence[Any]], *columns: StrList | NestedMap) -> None:
    """Say how many events or links each span has, in columns in which they stand already."""
    counts = [len(item) for item in items]
    for column in columns:
        column.offsets += [*accumulate(counts, initial=column.offsets[-1])][1:]


def _append(column: StrList, values: list[Any]) -> None:
    column.values += values


def _append_maps(maps: MapColumn, items: Sequence[Attributes]) -> None:
    """Append the attributes of one span's events or links."""
    for keys, values, _ in items:
        maps.keys += keys
        maps.values += values
        maps.offsets.append(len(maps.keys))


def repeat(batch: SpanBatch | LogBatch, count: int, resource: Attributes, scope: str, version: str) -> None:
    """Append what all items of a scope share, `count` times."""
    keys, values, letters = resource
    column: MapColumn = batch.resource
    base, width = len(column.keys), len(keys)
    column.keys += keys * count
    column.values += values * count
    column.offsets += range(base + width, base + width * count + 1, width) if width else [base] * count
    services = [value for key, value in zip(keys, values, strict=True) if key == "service.name"]
    batch.service += [services[0] if services else ""] * count
    batch.scope += [scope] * count
    batch.scope_version += [version] * count
    if isinstance(batch, SpanBatch):
        batch.resource_types += [letters] * count
