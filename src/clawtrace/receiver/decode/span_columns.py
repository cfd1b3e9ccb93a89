"""Decoded spans to columns, whichever encoding they came in: an object with the fields of protobuf's `Span` each.

All spans of many requests are laid side by side and become columns together: to make columns of five spans costs twice
as much a span as of five hundred. What makes no sense is found before the first column grows; then each span is asked
on its own, and what is left is laid side by side again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, SpanBatch, StrList
from clawtrace.receiver.attribution.attribute import Claim, ClaimReader
from clawtrace.receiver.decode.attribute_rows import AttributeColumns, AttributeRows, Resource, Said
from clawtrace.receiver.decode.values import NO_SPAN, NO_TRACE, SPAN_KINDS, STATUS_CODES, span_id_problem
from clawtrace.receiver.request import BadItemError, BadPayloadError, Decoded

__all__ = ["SpanColumns", "repeat"]

_KINDS = dict(enumerate(SPAN_KINDS))
_STATUS = dict(enumerate(STATUS_CODES))
_TOGETHER = 128
"""So many spans, or a few more, are laid side by side: of more, what was just read is no longer near the processor."""


class _Section(NamedTuple):
    """The spans of one scope of one request."""

    # Held, because protobuf makes objects of spans anew each time they are read.
    spans: list[Any]
    resource: Resource
    scope: str
    version: str
    decoded: Decoded


class _Nested(NamedTuple):
    """The events or the links of many spans, one after the other."""

    items: list[Any]
    ends: list[int]
    attributes: AttributeColumns


class SpanColumns:
    """Makes columns of requests of spans.

    Args:
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

    def decode(
        self, bodies: Iterable[bytes], parse: Callable[[bytes], Iterable[Any]], *, suspect: bool
    ) -> list[Decoded | BadPayloadError]:
        """Decode requests into one batch, in which the rows of each follow those of the one before.

        Args:
            parse: makes the `ResourceSpans` of a request; it raises `BadPayloadError` for what is none.
            suspect: whether they may contain a secret; resources are cleaned here, the rest by the caller.

        Returns:
            Each request, or why it is none. Spans that make no sense are counted in theirs, with the reason.

        Raises:
            BadPayloadError: an attribute shows that one of them is none; nothing of any may be used.
        """
        batch = SpanBatch()
        every: list[Decoded | BadPayloadError] = []
        sections: list[_Section] = []
        count = 0
        for body in bodies:
            decoded = Decoded(batch)
            try:
                own = [part for group in parse(body) for part in self._sections(group, decoded, suspect)]
            except BadPayloadError as problem:
                every.append(problem.with_traceback(None))  # it would hold this frame, and with it all that is decoded
                continue
            every.append(decoded)
            for section in own:
                sections.append(section)
                count += len(section.spans)
                if count >= _TOGETHER:
                    self._append_all(batch, sections)
                    sections, count = [], 0
        self._append_all(batch, sections)
        return every

    # -- finding out what makes sense ------------------------------------------------------------------------------

    def _sections(self, group: Any, decoded: Decoded, suspect: bool) -> list[_Section]:
        """Return the scopes of a `ResourceSpans`."""
        try:
            resource = self._attributes.of_resource(group.resource.attributes, suspect)
        except BadItemError as problem:
            decoded.rejected[Claim(), f"resource: {problem}"] += sum(len(scope.spans) for scope in group.scope_spans)
            return []
        sections = []
        for scope in group.scope_spans:
            spans, name, version = list(scope.spans), self._text(scope.scope.name), self._text(scope.scope.version)
            sections += [
                _Section(spans[start : start + _TOGETHER], resource, name, version, decoded)
                for start in range(0, len(spans), _TOGETHER)
            ]
        return sections

    def _append_all(self, batch: SpanBatch, sections: Sequence[_Section]) -> None:
        """Append the spans that make sense."""
        try:
            self._append(batch, sections)
        except BadItemError:
            self._append(batch, [self._sound(section) for section in sections])

    def _sound(self, section: _Section) -> _Section:
        """Return a section without the spans that make no sense, which are counted."""
        spans = []
        for span in section.spans:
            try:
                self._ids([span])
                self._attributes.of([span.attributes])
                self._nested([span.events])
                self._nested([span.links])
            except BadItemError as problem:
                section.decoded.rejected[section.resource.claim, str(problem)] += 1
            else:
                spans.append(span)
        return section._replace(spans=spans)

    def _ids(self, spans: Sequence[Any]) -> tuple[list[str], list[str], list[str]]:
        """Return the trace ids, span ids and parent span ids of spans that can be distinguished from others."""
        written = self._hexadecimal
        traces = [written(span.trace_id) for span in spans]
        own = [written(span.span_id) for span in spans]
        parents = [written(span.parent_span_id) for span in spans]
        if not (
            {*map(len, traces)} <= {32}
            and {*map(len, own)} <= {16}
            and {*map(len, parents)} <= {0, 16}
            and NO_TRACE not in traces
            and NO_SPAN not in own
        ):
            raise BadItemError(next(filter(None, map(span_id_problem, traces, own, parents))))
        return traces, own, ["" if parent == NO_SPAN else parent for parent in parents]

    def _nested(self, lists: Sequence[Sequence[Any]]) -> _Nested:
        items = [item for own in lists for item in own]
        return _Nested(items, [*accumulate(map(len, lists))], self._attributes.of([item.attributes for item in items]))

    # -- columns ---------------------------------------------------------------------------------------------------

    def _append(self, batch: SpanBatch, sections: Sequence[_Section]) -> None:
        """Append spans; when one of them makes no sense, nothing is appended.

        Raises:
            BadItemError: a span makes no sense.
            BadPayloadError: it is of a request that is none.
        """
        spans = [span for section in sections for span in section.spans]
        ids = self._ids(spans)
        attributes = self._attributes.of([span.attributes for span in spans])
        events = self._nested([span.events for span in spans])
        links = self._nested([span.links for span in spans])
        # From here on nothing is wrong with any of them.
        batch.trace_id += ids[0]
        batch.span_id += ids[1]
        batch.parent_span_id += ids[2]
        _append_maps(batch.attributes, attributes)
        batch.attribute_types += attributes.letters
        self._plain(batch, spans)
        self._events(batch, events)
        targets = self._links(batch, links)
        row = 0
        for section in sections:
            count = len(section.spans)
            repeat(batch, count, section.resource, section.scope, section.version)
            section.decoded.claims += self._said(
                section.resource.claim,
                attributes.said[row : row + count],
                targets[row : row + count],
            )
            row += count

    def _plain(self, batch: SpanBatch, spans: Sequence[Any]) -> None:
        """Append the plain fields of spans."""
        text = self._text
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

    def _events(self, batch: SpanBatch, events: _Nested) -> None:
        text = self._text
        _append_list(batch.event_times, [event.time_unix_nano for event in events.items], events.ends)
        _append_list(batch.event_names, [text(event.name) for event in events.items], events.ends)
        _append_nested(batch.event_attributes, events)

    def _links(self, batch: SpanBatch, links: _Nested) -> list[tuple[str, ...]]:
        """Append the links of spans, and return the traces that each span links to."""
        text, hexadecimal = self._text, self._hexadecimal
        traces = [hexadecimal(link.trace_id) for link in links.items]
        _append_list(batch.link_trace_ids, traces, links.ends)
        _append_list(batch.link_span_ids, [hexadecimal(link.span_id) for link in links.items], links.ends)
        _append_list(batch.link_states, [text(link.trace_state) for link in links.items], links.ends)
        _append_nested(batch.link_attributes, links)
        if not traces:
            return [()] * len(links.ends)
        return [tuple(traces[start:end]) for start, end in zip([0, *links.ends], links.ends, strict=False)]

    def _said(self, base: Claim, said: list[Said], targets: list[tuple[str, ...]]) -> list[Claim]:
        """Return what each span says about its run, in addition to what its resource says (`base`)."""
        known: dict[tuple[Said, tuple[str, ...]], Claim] = {((), ()): base}
        claims = []
        for item in zip(said, targets, strict=True):
            claim = known.get(item)
            if claim is None:
                claim = known[item] = self._claims.of_item(base, dict(item[0]), item[1])
            claims.append(claim)
        return claims


def _append_list(column: StrList, values: list[Any], ends: list[int]) -> None:
    base = column.offsets[-1]
    column.values += values
    column.offsets += [base + end for end in ends] if base else ends


def _append_maps(column: MapColumn, attributes: AttributeColumns) -> None:
    base = column.offsets[-1]
    column.keys += attributes.keys
    column.values += attributes.values
    column.offsets += [base + end for end in attributes.ends] if base else attributes.ends


def _append_nested(column: NestedMap, nested: _Nested) -> None:
    base = column.offsets[-1]
    _append_maps(column.maps, nested.attributes)
    column.offsets += [base + end for end in nested.ends] if base else nested.ends


def repeat(batch: SpanBatch | LogBatch, count: int, resource: Resource, scope: str, version: str) -> None:
    """Append what all items of a scope share, `count` times."""
    keys, values, letters = resource.attributes
    column: MapColumn = batch.resource
    base, width = len(column.keys), len(keys)
    column.keys += keys * count
    column.values += values * count
    column.offsets += range(base + width, base + width * count + 1, width) if width else [base] * count
    batch.service += [resource.service] * count
    batch.scope += [scope] * count
    batch.scope_version += [version] * count
    if isinstance(batch, SpanBatch):
        batch.resource_types += [letters] * count
