"""Joining batches of columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeVar

from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, SpanBatch, StrList

__all__ = ["Batch", "joined"]

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
