"""Joining and thinning batches of columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, TypeVar

from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, SpanBatch, StrList

__all__ = ["extend", "replace_surrogates", "secret_columns", "without"]

_SURROGATES = re.compile("[\ud800-\udfff]")

Batch = TypeVar("Batch", SpanBatch, LogBatch)


def extend(batch: Batch, more: Batch) -> None:
    """Append the rows of `more` to `batch`."""
    for field in fields(batch):
        column, other = getattr(batch, field.name), getattr(more, field.name)
        if isinstance(column, list):
            column += other
        elif isinstance(column, MapColumn):
            _extend_map(column, other)
        elif isinstance(column, StrList):
            _extend_offsets(column.offsets, other.offsets)
            column.values += other.values
        else:
            _extend_offsets(column.offsets, other.offsets)
            _extend_map(column.maps, other.maps)


def _extend_offsets(offsets: list[int], more: list[int]) -> None:
    base = offsets[-1]
    offsets += [base + offset for offset in more[1:]] if base else more[1:]


def _extend_map(column: MapColumn, more: MapColumn) -> None:
    _extend_offsets(column.offsets, more.offsets)
    column.keys += more.keys
    column.values += more.values


def without(batch: Batch, dropped: set[int]) -> Batch:
    """Return `batch` without the rows `dropped`."""
    kept = [row for row in range(len(batch)) if row not in dropped]
    thinned = type(batch)()
    for field in fields(batch):
        column = getattr(batch, field.name)
        if isinstance(column, list):
            setattr(thinned, field.name, [column[row] for row in kept] if column else [])
        elif isinstance(column, MapColumn):
            setattr(thinned, field.name, _kept_maps(column, kept))
        elif isinstance(column, StrList):
            setattr(thinned, field.name, _kept_lists(column, kept))
        else:
            setattr(thinned, field.name, _kept_nested(column, kept))
    return thinned


def _kept_maps(column: MapColumn, kept: list[int]) -> MapColumn:
    thinned = MapColumn()
    for row in kept:
        start, end = column.offsets[row], column.offsets[row + 1]
        thinned.keys += column.keys[start:end]
        thinned.values += column.values[start:end]
        thinned.offsets.append(len(thinned.keys))
    return thinned


def _kept_lists(column: StrList, kept: list[int]) -> StrList:
    values = [value for row in kept for value in column.values[column.offsets[row] : column.offsets[row + 1]]]
    offsets = [0]
    for row in kept:
        offsets.append(offsets[-1] + column.offsets[row + 1] - column.offsets[row])
    return StrList(offsets, values)  # type: ignore[arg-type]  # a column is all text or all integers


def _kept_nested(column: NestedMap, kept: list[int]) -> NestedMap:
    offsets: list[int] = [0]
    maps: list[int] = []
    for row in kept:
        maps += range(column.offsets[row], column.offsets[row + 1])
        offsets.append(len(maps))
    return NestedMap(offsets, _kept_maps(column.maps, maps))


def secret_columns(batch: SpanBatch | LogBatch) -> Iterator[list[str]]:
    """Yield the columns in which a secret may stand; resources are cleaned where they are decoded, once each."""
    yield batch.attributes.values
    if isinstance(batch, SpanBatch):
        yield batch.name
        yield batch.status_message
        yield batch.event_attributes.maps.values
        yield batch.link_attributes.maps.values
    else:
        yield batch.body


def replace_surrogates(batch: SpanBatch | LogBatch) -> None:
    """Make every text of `batch` valid Unicode: JSON can name halves of characters (lone surrogates)."""
    for texts in _texts(batch):
        for row, text in enumerate(texts):
            if isinstance(text, str) and not text.isascii():
                texts[row] = _SURROGATES.sub("\ufffd", text)


def _texts(batch: SpanBatch | LogBatch) -> Iterator[list[Any]]:
    for field in fields(batch):
        column = getattr(batch, field.name)
        if isinstance(column, NestedMap):
            column = column.maps
        if isinstance(column, MapColumn):
            yield column.keys
            yield column.values
        else:
            yield column.values if isinstance(column, StrList) else column
