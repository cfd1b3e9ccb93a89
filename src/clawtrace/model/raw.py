"""The raw tables: what was sent. First the Collector's columns, after them ours.

Column for column what the OpenTelemetry Collector's ClickHouse exporter writes
(``clickhouseexporter`` of opentelemetry-collector-contrib v0.140 is the contract), so that a ClickHouse
which a stock Collector fills is already a clawtrace store (spec: span-model.md §4). What that exporter
does not write is unknown there, not guessed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

__all__ = ["Batch", "LogBatch", "MapColumn", "NestedMap", "RawSink", "Receipt", "SpanBatch", "StrList", "joined"]


@dataclass(eq=False, repr=False)
class MapColumn:
    """A column of text-to-text maps, flattened: row i owns ``keys[offsets[i]:offsets[i + 1]]``."""

    offsets: list[int] = field(default_factory=lambda: [0])
    keys: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)

    def rows(self) -> Iterator[dict[str, str]]:
        """Yield each row as a dict."""
        for start, end in zip(self.offsets, self.offsets[1:], strict=False):
            yield dict(zip(self.keys[start:end], self.values[start:end], strict=True))


@dataclass(eq=False, repr=False)
class StrList:
    """A column of lists, flattened; the elements are texts, or integers for times."""

    offsets: list[int] = field(default_factory=lambda: [0])
    values: list[str] | list[int] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class NestedMap:
    """A column of lists of maps, flattened twice: row i owns the maps ``offsets[i] .. offsets[i + 1]``."""

    offsets: list[int] = field(default_factory=lambda: [0])
    maps: MapColumn = field(default_factory=MapColumn)


class _RowsOfBoth:
    """The columns that spans and log records have; every list has one entry a row.

    Ids are lower-case hex text. Text is valid UTF-8 (invalid bytes replaced). An attribute's value is text:
    integers and doubles in their shortest form, booleans ``true``/``false``, bytes base64, arrays and maps JSON;
    `attribute_types` holds one letter an attribute in the order of the map
    (s string, i int, d double, b bool, a array, m map, y bytes, n none).
    """

    def __init__(self) -> None:
        self.trace_id: list[str] = []
        """Empty text for a log record that has none."""
        self.span_id: list[str] = []
        self.service: list[str] = []
        self.resource = MapColumn()
        self.scope: list[str] = []
        self.scope_version: list[str] = []
        self.scope_attributes = MapColumn()
        self.attributes = MapColumn()
        self.attribute_types: list[str] = []
        self.flags: list[int] = []
        self.dropped_attributes: list[int] = []
        self.arrival_ns: list[int] = []
        self.request_no: list[int] = []
        self.protocol: list[str] = []
        """grpc, http/protobuf, http/json, file, sdk."""
        self.run_no: list[int] = []
        self.run_rule: list[str] = []

    def __len__(self) -> int:
        return len(self.span_id)


class SpanBatch(_RowsOfBoth):
    """Decoded spans as columns."""

    def __init__(self) -> None:
        super().__init__()
        self.parent_span_id: list[str] = []
        """Empty text for a root."""
        self.trace_state: list[str] = []
        self.name: list[str] = []
        self.kind: list[str] = []
        """Unspecified, Internal, Server, Client, Producer, Consumer."""
        self.start_ns: list[int] = []
        """As sent, unsigned 64 bit."""
        self.end_ns: list[int] = []
        """As sent, unsigned 64 bit; 0 means never ended."""
        self.status_code: list[str] = []
        """Unset, Ok, Error."""
        self.status_message: list[str] = []
        self.event_times = StrList()
        """Nanoseconds."""
        self.event_names = StrList()
        self.event_attributes = NestedMap()
        self.link_trace_ids = StrList()
        self.link_span_ids = StrList()
        self.link_states = StrList()
        self.link_attributes = NestedMap()
        self.dropped_events: list[int] = []
        self.dropped_links: list[int] = []
        self.resource_types: list[str] = []


class LogBatch(_RowsOfBoth):
    """Decoded log records as columns (``otel_logs``)."""

    def __init__(self) -> None:
        super().__init__()
        self.time_ns: list[int] = []
        """time_unix_nano, else observed_time_unix_nano."""
        self.observed_ns: list[int] = []
        self.severity_text: list[str] = []
        self.severity_number: list[int] = []
        self.body: list[str] = []
        """Text; arrays and maps as JSON."""
        self.event_name: list[str] = []
        """The record's own event_name field (the attribute ``event.name`` stays an attribute)."""
        self.resource_schema: list[str] = []
        """Schema URL of the resource."""
        self.scope_schema: list[str] = []
        """Schema URL of the scope."""


class Receipt(NamedTuple):
    """The effects of one request on one run: the numbers behind a "no trace" message."""

    run_no: int
    request_no: int
    arrival_ns: int
    protocol: str
    signal: str
    """traces, logs, metrics."""
    accepted: int = 0
    duplicates: int = 0
    rejected: int = 0
    """Items that will never be accepted (a bad id, for example)."""
    refused: int = 0
    """Items turned away under pressure."""
    reason: str = ""
    """Why items were rejected or refused; empty when none were."""


class RawSink(Protocol):
    """The target of the receiver's writer. A store MUST make a commit durable before it returns."""

    def commit(
        self,
        spans: SpanBatch,
        logs: LogBatch,
        receipts: list[Receipt],
        adopted: list[tuple[str, int, str]],
    ) -> None:
        """Write everything in one transaction; on return it survives ``kill -9``.

        Args:
            spans: new spans, duplicates already removed, `run_no` and `run_rule` filled in.
            logs: new log records, likewise.
            receipts: per request and run.
            adopted: (trace id, run_no, rule): stored spans and logs of that trace that were unattributed
                belong to this run (rules 5 to 8 completed later).

        Raises:
            StoreError: nothing of this commit was written.
        """
        ...

    def run_no(self, run_id: str) -> int:
        """Return the number of the run called `run_id`, registering it when it is new."""
        ...


Batch = TypeVar("Batch", SpanBatch, LogBatch)


def joined(batches: Sequence[Batch]) -> Batch:
    """Return the rows of all batches, of which there is at least one, as one batch; one that is alone is not copied."""
    if len(batches) == 1:
        return batches[0]
    whole = type(batches[0])()
    for column, *parts in zip(*(vars(batch).values() for batch in (whole, *batches)), strict=True):
        if isinstance(column, list):
            column += itertools.chain.from_iterable(parts)
        elif isinstance(column, MapColumn):
            _join_maps(column, parts)
        else:
            _join_offsets(column.offsets, parts)
            if isinstance(column, StrList):
                column.values = list(itertools.chain.from_iterable([part.values for part in parts]))
            else:
                _join_maps(column.maps, [part.maps for part in parts])
    return whole


def _join_offsets(offsets: list[int], parts: Sequence[MapColumn | StrList | NestedMap]) -> None:
    for part in parts:
        base, more = offsets[-1], part.offsets[1:]
        offsets += [base + offset for offset in more] if base else more


def _join_maps(column: MapColumn, parts: list[MapColumn]) -> None:
    _join_offsets(column.offsets, parts)
    column.keys += itertools.chain.from_iterable([part.keys for part in parts])
    column.values += itertools.chain.from_iterable([part.values for part in parts])
