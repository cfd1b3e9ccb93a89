"""Cleaning batches of columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from clawtrace.model.raw import LogBatch, MapColumn, SpanBatch

__all__ = ["redact"]


def redact(batch: SpanBatch | LogBatch, clean_all: Callable[[list[str]], None]) -> None:
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
