"""An answer that stays in Arrow's columns until a value is read.

A question about 100 000 runs has 100 000 rows, of which few are ever shown; to make Python objects of all of them takes
ten times as long as to ask. Nothing here refers to the store: an answer outlives it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from decimal import Decimal
from itertools import accumulate, chain, compress, pairwise
from typing import Any

import nanoarrow as na

__all__ = ["ColumnAnswer"]

_NUMBERS = frozenset(("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float", "double"))


class ColumnAnswer:
    """The rows of a query, column by column (see `clawtrace.store.api.Columns`).

    Args:
        stream: anything with ``__arrow_c_stream__``; it is read to its end.
    """

    def __init__(self, stream: Any) -> None:
        source = na.c_array_stream(stream)
        self.columns = tuple(field.name for field in na.Schema(source.get_schema()).fields)
        self._chunks = list(source)
        self._starts: list[int] = [0, *accumulate(chunk.length for chunk in self._chunks)]
        self._readers: dict[str, list[Callable[[int], Any]]] = {}

    def __len__(self) -> int:
        return self._starts[-1]

    def column(self, name: str) -> list[Any]:
        """Return every value of a column, in the order of the rows."""
        place = self.columns.index(name)
        return list(chain.from_iterable(_values(chunk, place) for chunk in self._chunks))

    def key(self, name: str) -> Hashable:
        """Return what equals the key of another answer's column only where that has the same values in the same order.

        Of texts these are the bytes as they lie there, so that no value is made.
        """
        place = self.columns.index(name)
        views = [chunk.view().child(place) for chunk in self._chunks]
        if any(view.storage_type != "string" or view.null_count for view in views):
            return tuple(self.column(name))
        return tuple(bytes(memoryview(view.buffer(number))) for view in views for number in (1, 2))

    def row(self, number: int) -> Mapping[str, Any]:
        """Return a row, whose values are read when they are looked up."""
        chunk = 0
        while self._starts[chunk + 1] <= number:
            chunk += 1
        return _AnswerRow(self, chunk, number - self._starts[chunk])

    def value(self, chunk: int, number: int, name: str) -> Any:
        """Return the value of the column `name` in a row of a chunk.

        Raises:
            KeyError: there is no such column.
        """
        if name not in self._readers:
            if name not in self.columns:
                raise KeyError(name)
            place = self.columns.index(name)
            self._readers[name] = [_reader(one, place) for one in self._chunks]
        return self._readers[name][chunk](number)


class _AnswerRow(Mapping[str, Any]):
    """One row of an answer."""

    __slots__ = ("_answer", "_chunk", "_number")

    def __init__(self, answer: ColumnAnswer, chunk: int, number: int) -> None:
        self._answer = answer
        self._chunk = chunk
        self._number = number

    def __getitem__(self, name: str) -> Any:
        return self._answer.value(self._chunk, self._number, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._answer.columns)

    def __len__(self) -> int:
        return len(self._answer.columns)


def _reader(chunk: Any, place: int) -> Callable[[int], Any]:
    """Return a function from a row's number to its value, which reads nothing else."""
    view = chunk.view().child(place)
    read: Callable[[int], Any]
    if view.storage_type == "string":
        ends, text = memoryview(view.buffer(1)), memoryview(view.buffer(2))

        def read(number: int) -> str:
            return str(text[ends[number] : ends[number + 1]], "utf-8")

    elif view.storage_type == "bool":
        bits = view.buffer(1)

        def read(number: int) -> bool:
            return bool(bits.element(number))

    elif view.storage_type in _NUMBERS:
        read = memoryview(view.buffer(1)).__getitem__
    else:
        return _values(chunk, place).__getitem__
    if not view.null_count:
        return read
    known = view.buffer(0)
    return lambda number: read(number) if known.element(number) else None


def _values(chunk: Any, place: int) -> list[Any]:
    """Return all values of one column of a chunk."""
    view = chunk.view().child(place)
    length = chunk.length
    if view.null_count == length:
        return [None] * length
    known = memoryview(view.buffer(0).unpack_bits(0, length)).tolist() if view.null_count else None
    if view.storage_type == "string":
        return _texts(memoryview(view.buffer(1)).tolist(), bytes(memoryview(view.buffer(2))), known)
    if view.storage_type == "bool":
        values = memoryview(view.buffer(1).unpack_bits(0, length)).tolist()
    elif view.storage_type in _NUMBERS:
        values = memoryview(view.buffer(1)).tolist()
    else:
        return [_whole(value) for value in na.Array(chunk).child(place).to_pylist()]
    return values if known is None else [value if there else None for value, there in zip(values, known, strict=True)]


def _texts(ends: list[int], raw: bytes, known: list[int] | None) -> list[Any]:
    """Return the texts that end there in `raw`, None where none is known."""
    places = pairwise(ends)
    wanted = places if known is None else compress(places, known)
    if raw.isascii():
        # Slices of one text are made three times as fast as texts decoded one by one.
        whole = raw.decode("ascii")
        texts = [whole[begin:end] for begin, end in wanted]
    else:
        texts = [str(raw[begin:end], "utf-8") for begin, end in wanted]
    if known is None:
        return texts
    values: list[Any] = [None] * len(known)
    for place, text in zip(compress(range(len(known)), known), texts, strict=True):
        values[place] = text
    return values


def _whole(value: Any) -> Any:
    """Return a whole number for a decimal without places: Arrow knows no 128-bit integers, which sums are."""
    return int(value) if isinstance(value, Decimal) and value.as_tuple().exponent == 0 else value
